# An order's time-out and a login's limit, without waiting for them: Minitest and redis-rb.
require "minitest/autorun"
require "redis"

class OrdersTest < Minitest::Test
  CLIENT = Redis.new(url: ENV.fetch("LIMITKV_URL"))

  def setup
    CLIENT.flushall
    CLIENT.call("LKV.CLOCK", "FREEZE") # from here on time passes only when a test says so
  end

  def advance(ms) = CLIENT.call("LKV.CLOCK", "ADVANCE", ms)

  def test_an_order_is_over_after_15_minutes
    CLIENT.call("DQ.ADD", "orders", "DELAY", 900_000, "ID", "order:7", "ann")
    advance(899_999)
    assert_nil CLIENT.call("DQ.POP", "orders")
    advance(1)
    assert_equal %w[order:7 ann], CLIENT.call("DQ.POP", "orders").first.first(2)
  end

  def test_the_fourth_login_in_a_minute_is_refused
    login = -> { CLIENT.call("RL.ACQUIRE", "login:ann", 1, "LOG", 3, 60_000).first }
    assert_equal [0, 0, 0, 1], Array.new(4) { login.call }
    advance(60_000)
    assert_equal 0, login.call
  end
end
