// Package nethttp is middleware for net/http that limits requests by limitkv:
//
//	limit, err := nethttp.New(nethttp.Options{
//		Client: redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}),
//		Limits: func(r *http.Request) []nethttp.Limit {
//			return []nethttp.Limit{{Key: "api:" + r.Header.Get("X-Api-Key"), Rule: "GCRA 100 60000 BURST 20"}}
//		},
//	})
//	http.ListenAndServe(":8080", limit(mux))
//
// It sends the RateLimit and RateLimit-Policy fields of the IETF's draft with each answer. A refused request gets 429 with
// Retry-After. The package is a separate module, so that the server's module does not need its dependencies.
package nethttp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Limit is a limiter from which a request takes.
type Limit struct {
	Policy string // its name in the headers, "default" if empty
	Key    string
	Rule   string // arguments of RL.ACQUIRE: "GCRA 100 60000 BURST 20", "LOG 100 60000", "CAL 10000 MONTH TZ Europe/Berlin"
	Cost   int64  // 1 if 0
}

// Options say which limits apply, and what happens if limitkv cannot decide.
type Options struct {
	Client redis.Cmdable
	// Limits returns what a request takes: all of it or nothing. A request without limits passes.
	Limits func(*http.Request) []Limit
	// FailClosed answers 503 while limitkv is unreachable or does not reply in time. Otherwise requests pass.
	FailClosed bool
	Timeout    time.Duration // how long a request waits for the server; 100 ms if 0
	// OnError, if not nil, is called for each request on which limitkv could not decide.
	OnError func(*http.Request, error)
	// Refused, if not nil, writes the answer instead of the middleware, after the headers. status is 429 or 503.
	Refused func(w http.ResponseWriter, r *http.Request, status int)
}

const defaultTimeout = 100 * time.Millisecond

var (
	rule = regexp.MustCompile(`^(?:(?:GCRA|LOG|WINDOW|FIXED) (\d+) (\d+)(?: BURST \d+)?|CAL (\d+) (HOUR|DAY|WEEK|MONTH)(?: TZ \S+)?(?: FROM \d+)?|TOTAL (\d+))$`)
	name = regexp.MustCompile(`^[\w.:-]+$`)
	// calendar has the lengths of calendar periods in seconds. Months differ, so they have none.
	calendar = map[string]string{"HOUR": "3600", "DAY": "86400", "WEEK": "604800"}
	// mistakes matches error replies that stay the same if the request is tried again.
	mistakes = regexp.MustCompile(`^(ERR|WRONGTYPE|NOPERM|NOAUTH|WRONGPASS|CROSSSLOT)\b`)
)

const aboveCapacity = "cost is above the limiter's capacity" // such a request can never be granted

// New returns the middleware.
func New(o Options) (func(http.Handler) http.Handler, error) {
	if o.Client == nil || o.Limits == nil {
		return nil, errors.New("limitkv: Client and Limits are needed")
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			status := o.decide(w.Header(), r)
			switch {
			case status == http.StatusOK:
				next.ServeHTTP(w, r)
			case o.Refused != nil && status != http.StatusInternalServerError:
				o.Refused(w, r, status)
			default:
				http.Error(w, http.StatusText(status), status)
			}
		})
	}, nil
}

// decide returns 200, 429, 503, or 500 for an invalid limit, and sets the headers.
func (o *Options) decide(h http.Header, r *http.Request) int {
	limits := o.Limits(r)
	if len(limits) == 0 {
		return http.StatusOK
	}
	policies := make([]string, len(limits))
	for i := range limits {
		var err error
		if policies[i], err = limits[i].policy(); err != nil {
			return o.fail(r, err)
		}
	}
	h.Add("RateLimit-Policy", strings.Join(policies, ", "))
	decision, states, err := o.inTime(r.Context(), limits)
	switch {
	case err == nil:
	case strings.Contains(err.Error(), aboveCapacity):
		return http.StatusTooManyRequests
	case mistakes.MatchString(err.Error()):
		return o.fail(r, err)
	default:
		o.tell(r, err)
		if !o.FailClosed {
			return http.StatusOK
		}
		h.Set("Retry-After", "1")
		return http.StatusServiceUnavailable
	}
	items := make([]string, len(limits))
	for i, s := range states {
		items[i] = fmt.Sprintf(`"%s";r=%d`, limits[i].name(), max(s[2], 0))
		if s[4] >= 0 {
			items[i] += ";t=" + seconds(s[4])
		}
	}
	h.Add("RateLimit", strings.Join(items, ", "))
	if decision[0] == 0 {
		return http.StatusOK
	}
	if decision[3] >= 0 {
		h.Set("Retry-After", seconds(max(decision[3], 1)))
	}
	return http.StatusTooManyRequests
}

func (o *Options) tell(r *http.Request, err error) {
	if o.OnError != nil {
		o.OnError(r, err)
	}
}

func (o *Options) fail(r *http.Request, err error) int {
	o.tell(r, err)
	return http.StatusInternalServerError
}

// inTime calls ask, and does not wait longer than the timeout, whatever timeouts and retries the client has.
func (o *Options) inTime(ctx context.Context, limits []Limit) (decision []int64, states [][]int64, err error) {
	type answer struct {
		decision []int64
		states   [][]int64
		err      error
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	answered := make(chan answer, 1)
	go func() {
		decision, states, err := o.ask(ctx, limits)
		answered <- answer{decision, states, err}
	}()
	select {
	case a := <-answered:
		return a.decision, a.states, a.err
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("limitkv did not answer within %v: %w", o.Timeout, ctx.Err())
	}
}

// ask takes from one limiter, or from several at once. The reply for several has only the state of the one that decided, so
// the state of each is read after it, in the same pipeline.
func (o *Options) ask(ctx context.Context, limits []Limit) (decision []int64, states [][]int64, err error) {
	var taken *redis.Cmd
	var peeks []*redis.Cmd
	_, err = o.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		if len(limits) == 1 {
			taken = p.Do(ctx, append([]any{"RL.ACQUIRE", limits[0].Key, limits[0].cost()}, limits[0].rule()...)...)
			peeks = append(peeks, taken)
			return nil
		}
		args := []any{"RL.MACQUIRE", len(limits)}
		for _, l := range limits {
			args = append(args, l.Key, l.cost())
		}
		for i, l := range limits {
			args = append(append(args, "RULE", i+1), l.rule()...)
		}
		taken = p.Do(ctx, args...)
		for _, l := range limits {
			peeks = append(peeks, p.Do(ctx, append([]any{"RL.ACQUIRE", l.Key, "PEEK"}, l.rule()...)...))
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	if decision, err = integers(taken); err != nil {
		return nil, nil, err
	}
	for _, p := range peeks {
		s, err := integers(p)
		if err != nil {
			return nil, nil, err
		}
		states = append(states, s)
	}
	return decision, states, nil
}

// integers returns a reply's integers, at least five.
func integers(c *redis.Cmd) ([]int64, error) {
	all, err := c.Int64Slice()
	if err == nil && len(all) < 5 {
		err = fmt.Errorf("limitkv replied %v", all)
	}
	return all, err
}

func (l Limit) name() string {
	if l.Policy == "" {
		return "default"
	}
	return l.Policy
}

func (l Limit) cost() int64 {
	if l.Cost == 0 {
		return 1
	}
	return l.Cost
}

func (l Limit) rule() (args []any) {
	for word := range strings.SplitSeq(l.Rule, " ") {
		args = append(args, word)
	}
	return args
}

// policy returns the limit's item in RateLimit-Policy.
func (l Limit) policy() (string, error) {
	part := rule.FindStringSubmatch(l.Rule)
	switch {
	case part == nil:
		return "", fmt.Errorf("limitkv: %q is no rule for a middleware; FIXED 100 60000 is one", l.Rule)
	case l.Key == "":
		return "", errors.New("limitkv: a limit has no key")
	case !name.MatchString(l.name()):
		return "", fmt.Errorf("limitkv: %q is no name for a policy", l.Policy)
	}
	text := `"` + l.name() + `";q=` + part[1] + part[3] + part[5]
	window := calendar[part[4]]
	if part[2] != "" {
		ms, err := strconv.ParseInt(part[2], 10, 64)
		if err != nil {
			return "", err
		}
		window = seconds(ms)
	}
	if window != "" {
		text += ";w=" + window
	}
	return text, nil
}

// seconds rounds up, so that a client that waits that long is not too early.
func seconds(ms int64) string { return strconv.FormatInt((ms+999)/1000, 10) }
