-- GCRA: one number, the theoretical arrival time. KEYS[1] state; ARGV[1] burst, ARGV[2] count, ARGV[3] period in s,
-- ARGV[4] now in s with a fraction, ARGV[5] cost. Replies {limited, remaining, retry after, reset after}.
local burst, interval = tonumber(ARGV[1]), tonumber(ARGV[3]) / tonumber(ARGV[2])
local now, cost = tonumber(ARGV[4]), tonumber(ARGV[5])
local arrival = math.max(tonumber(redis.call('GET', KEYS[1]) or now), now)
local next_arrival = arrival + interval * cost
local allow_at = next_arrival - interval * burst
local diff = now - allow_at
local remaining = diff / interval
if remaining < 0 then
  return {1, 0, tostring(-diff), tostring(arrival - now)}
end
if next_arrival > now then
  redis.call('SET', KEYS[1], string.format('%.6f', next_arrival), 'EX', 1000)
end
return {0, math.floor(remaining), '-1', tostring(next_arrival - now)}
