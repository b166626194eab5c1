-- sweep.lua: unlinks keys that a flush left.   KEYS prefix, keys   ARGV what meta.trash is when they are gone, or '-'   -> 1.
-- O(keys).   Any cut is safe: meta.trash still names what is left.
call('HDEL', META, 'room') -- a first write that a full memory lets pass
for i = 2, #KEYS do call('UNLINK', KEYS[i]) end
if ARGV[1] ~= '-' then call('HSET', META, 'trash', ARGV[1]) end
return 1
