-- Limits requests of OpenResty, or of nginx with its Lua module, by limitkv. It needs no other library:
--
--   lua_package_path "/etc/nginx/lua/?.lua;;";
--   init_by_lua_block { limiter = require("limitkv").new({ host = "127.0.0.1", port = 6379, failure_mode = "open" }) }
--   location /api/ {
--     access_by_lua_block { limiter:limit({ key = "api:" .. ngx.var.remote_addr, rule = "GCRA 100 60000 BURST 20" }) }
--     proxy_pass http://app;
--   }
--
-- It sends RateLimit and RateLimit-Policy with each answer. A refused request ends with 429 and Retry-After.
local M = {}
M.__index = M

local CALENDAR_SECONDS = { HOUR = 3600, DAY = 86400, WEEK = 604800 } -- months differ
local TIMED = { GCRA = true, LOG = true, WINDOW = true, FIXED = true }

local function seconds(ms) return math.ceil(ms / 1000) end

-- new takes host and port, or a host "unix:/path"; password, if the server asks for one; timeout_ms for each of connecting,
-- sending and reading, 100 if not given; and failure_mode: "open", requests pass while the server is away, or "closed",
-- they end with 503.
function M.new(options)
  local mode = options.failure_mode or "open"
  if mode ~= "open" and mode ~= "closed" then error("limitkv: failure_mode is " .. mode .. ", it can be open or closed") end
  return setmetatable({
    host = options.host or "127.0.0.1", port = options.port or 6379, password = options.password,
    timeout_ms = options.timeout_ms or 100, failure_mode = mode,
  }, M)
end

-- request writes a command as the protocol has it.
local function request(words)
  local out = { "*" .. #words .. "\r\n" }
  for _, word in ipairs(words) do
    word = tostring(word)
    out[#out + 1] = "$" .. #word .. "\r\n" .. word .. "\r\n"
  end
  return table.concat(out)
end

-- read reads a line, or an array of integers. It returns nil and an error for what the connection does, and false and an
-- error for what the server replies.
local function read(socket)
  local line, err = socket:receive()
  if not line then return nil, err end
  local kind, rest = line:sub(1, 1), line:sub(2)
  if kind == "-" then return false, rest end
  if kind ~= "*" then return rest end
  local all = {}
  for i = 1, tonumber(rest) do
    line, err = socket:receive()
    if not line then return nil, err end
    all[i] = tonumber(line:sub(2))
  end
  return all
end

-- ask sends a command on a connection of nginx's pool, and gives the connection back if all is well with it.
function M:ask(words)
  local socket = ngx.socket.tcp()
  socket:settimeouts(self.timeout_ms, self.timeout_ms, self.timeout_ms)
  local ok, err
  if self.host:sub(1, 5) == "unix:" then ok, err = socket:connect(self.host) else ok, err = socket:connect(self.host, self.port) end
  if not ok then return nil, err end
  if self.password and socket:getreusedtimes() == 0 then
    ok, err = socket:send(request({ "AUTH", self.password }))
    if ok then ok, err = read(socket) end
    if not ok then
      socket:close()
      return ok, err
    end
  end
  ok, err = socket:send(request(words))
  if not ok then return nil, err end
  local reply
  reply, err = read(socket)
  if reply == nil then socket:close() else socket:setkeepalive(60000, 64) end
  return reply, err
end

-- policy_of writes a limit as an item of RateLimit-Policy.
local function policy_of(name, words)
  local kind, count, third = words[1], words[2], words[3]
  if not tostring(count):match("^%d+$") or TIMED[kind] and not tostring(third):match("^%d+$") or not (TIMED[kind] or kind == "CAL" or kind == "TOTAL") then
    error("limitkv: " .. table.concat(words, " ") .. " is no rule for nginx; FIXED 100 60000 is one")
  end
  local window = TIMED[kind] and seconds(third) or CALENDAR_SECONDS[third]
  return '"' .. name .. '";q=' .. count .. (window and ";w=" .. window or "")
end

-- limit takes from the limiter of a key: { key, rule, cost, policy }. The rule is written as RL.ACQUIRE has it, the cost
-- is 1 and the policy's name "default" if not given. It returns if the request may pass, and ends it otherwise.
function M:limit(limit)
  if not limit.key or limit.key == "" then error("limitkv: a limit has no key") end
  local name, rule = limit.policy or "default", {}
  for word in limit.rule:gmatch("%S+") do rule[#rule + 1] = word end
  ngx.header["RateLimit-Policy"] = policy_of(name, rule)
  local reply, err = self:ask({ "RL.ACQUIRE", limit.key, limit.cost or 1, unpack(rule) })
  if reply then
    ngx.header["RateLimit"] = '"' .. name .. '";r=' .. math.max(0, reply[3]) .. (reply[5] >= 0 and ";t=" .. seconds(reply[5]) or "")
    if reply[1] == 0 then return end
    if reply[4] >= 0 then ngx.header["Retry-After"] = math.max(1, seconds(reply[4])) end
    return ngx.exit(429)
  end
  if reply == false and err:find("cost is above the limiter's capacity", 1, true) then return ngx.exit(429) end -- it never fits
  ngx.log(ngx.ERR, "limitkv: ", err)
  local word = reply == false and err:match("^%S+")
  if word == "ERR" or word == "WRONGTYPE" or word == "NOPERM" or word == "NOAUTH" or word == "WRONGPASS" or word == "CROSSSLOT" then
    return ngx.exit(500) -- trying again does not mend it
  end
  if self.failure_mode == "open" then return end
  ngx.header["Retry-After"] = 1
  return ngx.exit(503)
end

return M
