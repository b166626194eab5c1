-- open.lua: makes the crawl's `meta` if there is none, and tells it how the crawl is to be run. Stands without the prelude.
-- KEYS prefix   ARGV run id of the server, order, joins(0|1), then field value pairs   -> epoch, version, order, run id of the
-- last repair, schema, bodies.   O(1).   Any cut is safe: the same call completes it. Who joins changes nothing that is there.
local META, call = KEYS[1] .. ':meta', redis.call
local schema = call('HGET', META, 'schema')
local bodies = call('HLEN', KEYS[1] .. ':req')
if schema and schema ~= '1' then return { '', '', '', '', schema, bodies } end
local order = call('HGET', META, 'order')
call('HDEL', META, 'room') -- a full memory must not keep those away who could empty it
local joins = ARGV[3] == '1'
for i = 4, #ARGV, 2 do call(joins and 'HSETNX' or 'HSET', META, ARGV[i], ARGV[i + 1]) end
if not order or (bodies == 0 and not joins) then call('HSET', META, 'order', ARGV[2]) end -- what is queued was scored by the order it came in
local time = call('TIME')
-- The first epoch is the time: were it 1, a crawl that was deleted and begun anew could not be told from the one before.
local first = { epoch = time[1] * 1000 + math.floor(time[2] / 1000), version = 1, size = 4096, split = 0, now = 0 }
first.run, first.server = ARGV[1], ARGV[1]
for field, value in pairs(first) do
  call('HSETNX', META, field, value)
end
call('HSETNX', META, 'called', time[1] * 1000)
if call('HGET', META, 'server') ~= ARGV[1] then -- a restarted server may have lost its last second: what was seen, too
  call('HINCRBY', META, 'version', 1)
  call('HSET', META, 'server', ARGV[1])
end
call('HSETNX', META, 'schema', 1)
call('HSETNX', META, 'state', 'running') -- last: the verbs take a crawl without it for none
local known = call('HMGET', META, 'epoch', 'version', 'order', 'run', 'schema')
known[6] = bodies
return known
