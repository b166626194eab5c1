-- finish.lua: whether the crawl is finished: seeding has ended and nothing is pending but the dead. Decided here, and kept.
-- KEYS prefix   ARGV -   -> stamp, 1 or 0.   O(1), one write.
if STATE == 'running' and call('HGET', META, 'seeded') == '1' and call('HLEN', REQ) == call('ZCARD', DEAD) then
  local refusal = begin(true)
  if refusal then return refusal end
  set_state('finished')
end
return { stamp(), STATE == 'finished' and 1 or 0 }
