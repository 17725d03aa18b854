package main

// Contests on a limitkv in this process: two clients never have a lock at the same time, each way makes progress, and the line
// of LK.ACQUIRE is fair.

import (
	"testing"
	"time"
)

// redissonLike returns a recording of a lock with the same calls as Redisson's, by similar scripts.
func redissonLike() *recording {
	const (
		lock = `if redis.call('exists', KEYS[1]) == 0 then redis.call('hset', KEYS[1], ARGV[2], 1) redis.call('pexpire', KEYS[1], ARGV[1]) return nil end
return redis.call('pttl', KEYS[1])`
		unlock = `if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return redis.error_reply('not the holder') end
redis.call('del', KEYS[1]) redis.call(ARGV[4], KEYS[2], ARGV[1]) redis.call('set', KEYS[3], 1, 'px', 1000) return 1`
		uuid = "c39d58a6-0542-43c1-a8b9-3987269f0315"
	)
	return &recording{
		scripts: []string{lock, unlock},
		calls: []recorded{
			{[]string{"EVALSHA", shaOf(lock), "1", mark, "30000", uuid + ":62"}, true},
			{[]string{"EVALSHA", shaOf(lock), "1", mark, "30000", uuid + ":63"}, false},
			{[]string{"EVALSHA", shaOf(unlock), "3", mark, channelPrefix + "{" + mark + "}", latchPrefix + "{" + mark + "}:cb5c070a1f8f49dd739a0731be3399e9",
				"0", "30000", uuid + ":62", "PUBLISH", "127428"}, false},
			{[]string{"DEL", latchPrefix + "{" + mark + "}:" + uuid}, false},
		},
	}
}

func TestContests(t *testing.T) {
	dir := t.TempDir()
	if err := redissonLike().write(recordingFile(dir, "redisson.lock")); err != nil {
		t.Fatal(err)
	}
	list, err := contests(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 3 {
		t.Fatalf("%d contests, want LK.ACQUIRE, SET NX PX and the recorded one", len(list))
	}
	target := startServer(t)
	for _, x := range list {
		h, err := target.contend(x, 8, 50*time.Millisecond, 400*time.Millisecond)
		if err != nil {
			t.Errorf("%s: %v", x.name, err)
			continue
		}
		t.Logf("%s: %+v", x.name, h)
		if h.Grants == 0 || h.Grants < h.PerSecond || h.Fairness < 0 || h.Fairness > 1 || h.WaitP99 < h.WaitP50 {
			t.Errorf("%s: %+v", x.name, h)
		}
		if x.own && (h.Fairness < 0.5 || h.PerSecond < 0.9*h.Grants) {
			t.Errorf("the line is not fair: %+v", h)
		}
	}
}

// A recording of something else makes no contest.
func TestContestOfWrongRecording(t *testing.T) {
	for name, spoil := range map[string]func(r *recording){
		"nothing is published": func(r *recording) { r.calls = r.calls[:2] },
		"nothing is tidied up": func(r *recording) { r.calls = r.calls[:3] },
		"the first is refused": func(r *recording) { r.calls = r.calls[1:] },
		"there is no owner":    func(r *recording) { r.calls[0].args = r.calls[0].args[:5] },
	} {
		r := redissonLike()
		spoil(r)
		if _, err := redissonContest(r, false); err != errRecording {
			t.Errorf("%s: %v", name, err)
		}
	}
}
