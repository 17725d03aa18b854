package service

import (
	"strconv"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Headers are the names of the response headers about a client's limit.
type Headers struct {
	Limit, Remaining, Reset, RetryAfter string
}

// of returns the headers for the descriptor that is closest to its limit.
func (h Headers) of(a *asked) (list []*core.HeaderValue) {
	add := func(name, value string) {
		if name != "" {
			list = append(list, &core.HeaderValue{Key: name, Value: value})
		}
	}
	add(h.Limit, strconv.FormatUint(uint64(a.Count), 10))
	add(h.Remaining, strconv.FormatUint(a.Remaining, 10))
	add(h.Reset, seconds(a.Full))
	if a.over && !a.Shadow && !a.never && a.hits > 0 && a.RetryAfter > 0 {
		add(h.RetryAfter, seconds(a.RetryAfter))
	}
	return list
}

// seconds rounds up, so that a client that waits that long is not too early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
