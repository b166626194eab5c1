-- now.lua: the store's clock in ms; it never goes back.   KEYS prefix   ARGV -   -> ms.   Read only, O(1).
return NOW
