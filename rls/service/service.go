// Package service, internal to the gateway, implements Envoy's rate limit service (v3) with limitkv. Between requests it
// stores only metrics, so any number of gateways count together.
//
// One RL.MACQUIRE takes all limits of a request, or none. So a refused request is not charged to limits that would have
// granted it, as with STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT of envoyproxy/ratelimit. If a cost is more than what is left,
// the rest is used up, as there: a request for 5 when 3 are left is refused, and so is the next one.
package service

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/limitkv/limitkv/rls/config"
)

// FailureMode is the answer to a request while limitkv does not reply.
type FailureMode uint8

const (
	// FailError answers an error, so that Envoy's failure_mode_deny decides.
	FailError FailureMode = iota
	// FailAllow answers OK.
	FailAllow
	// FailDeny answers OVER_LIMIT.
	FailDeny
)

// Options configure a Service.
type Options struct {
	// Prefix is the prefix of every key.
	Prefix string
	// Timeout is how long limitkv may take for a request.
	Timeout time.Duration
	// Failure is the answer if limitkv takes longer or is unreachable.
	Failure FailureMode
	// Shadow counts, and answers OK to everything.
	Shadow bool
	// Alone counts each descriptor independently of the others.
	Alone bool
	// NearRatio is the part of a limit from which hits count as near the limit in metrics.
	NearRatio float64
	// Headers are the headers of the answer; one whose name is "" is omitted.
	Headers Headers
}

// Decider makes the decisions.
type Decider interface {
	Decide(ctx context.Context, groups []Group) ([][]Decision, error)
}

// Service is Envoy's rate limit service.
type Service struct {
	rls.UnimplementedRateLimitServiceServer
	opts    Options
	decider Decider
	metrics *Metrics
	config  atomic.Pointer[config.Config]
	logf    func(format string, args ...any)
	logged  atomic.Int64 // when a failure was last logged, in Unix seconds
}

// New makes a service without a configuration.
func New(opts Options, decider Decider, metrics *Metrics, logf func(string, ...any)) *Service {
	return &Service{opts: opts, decider: decider, metrics: metrics, logf: logf}
}

// SetConfig sets the configuration for all further requests.
func (s *Service) SetConfig(c *config.Config) { s.config.Store(c) }

// asked is a descriptor of a request, with its limit and its decision.
type asked struct {
	config.Found
	hits uint64
	// group and take say where its decision is; group is -1 if limitkv is not called for it.
	group, take int
	// never: the request is always refused, since it costs more than the capacity.
	never bool
	over  bool
	// rest: a cost above what is left uses that up.
	rest bool
	Decision
}

// ShouldRateLimit decides on a request.
func (s *Service) ShouldRateLimit(ctx context.Context, r *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	begun := time.Now()
	answer, err := s.answer(ctx, r)
	s.metrics.answered(answer, err, time.Since(begun))
	return answer, err
}

// descriptorsMax is how many descriptors a request may have. Envoy sends one for each action of a route.
const descriptorsMax = 256

func (s *Service) answer(ctx context.Context, r *rls.RateLimitRequest) (*rls.RateLimitResponse, error) {
	switch {
	case r.GetDomain() == "":
		return nil, status.Error(codes.InvalidArgument, "rate limit domain must not be empty")
	case len(r.GetDescriptors()) == 0:
		return nil, status.Error(codes.InvalidArgument, "rate limit descriptor list must not be empty")
	case len(r.GetDescriptors()) > descriptorsMax:
		return nil, status.Errorf(codes.InvalidArgument, "a request may have %d descriptors", descriptorsMax)
	}
	c := s.config.Load()
	if c == nil {
		return nil, status.Error(codes.Unavailable, "no rate limit configuration loaded")
	}
	list, err := find(c, r)
	if err != nil {
		return nil, err
	}
	if err := s.decide(ctx, r, list); err != nil {
		if context.Cause(ctx) == context.Canceled {
			return nil, status.FromContextError(context.Canceled).Err() // nobody waits for the answer, and limitkv has not failed
		}
		s.failed(err)
		return s.failure(r, err)
	}
	return s.reply(r, list), nil
}

// find finds the limits of a request.
func find(c *config.Config, r *rls.RateLimitRequest) ([]asked, error) {
	list := make([]asked, len(r.GetDescriptors()))
	var replaced []string
	for i, d := range r.GetDescriptors() {
		a := &list[i]
		a.Found, a.group, a.hits = c.Find(r.GetDomain(), d), -1, hits(r, d)
		if a.Limit == nil {
			continue
		}
		if d.GetLimit() != nil && config.Length(a.Unit) == 0 {
			return nil, status.Errorf(codes.InvalidArgument, "descriptor %d overrides its limit by one without a unit", i)
		}
		// envoyproxy/ratelimit counts the refused cost. A cost in the descriptor itself may have been used already, such as
		// the tokens of an answer. Otherwise, with a sliding algorithm, a client that waits must find what was left.
		a.rest = a.Algorithm == config.Fixed || d.GetHitsAddend() != nil
		replaced = append(replaced, a.Replaces...)
	}
	for i := range list {
		if a := &list[i]; a.Limit != nil && a.Name != "" && slices.Contains(replaced, a.Name) {
			a.Limit = nil
		}
	}
	return list, nil
}

// hits returns the cost of a descriptor. The request's cost defaults to 1. The descriptor's own cost may be 0, which only
// reads.
func hits(r *rls.RateLimitRequest, d *ratelimit.RateLimitDescriptor) uint64 {
	if h := d.GetHitsAddend(); h != nil {
		return h.GetValue()
	}
	return uint64(max(r.GetHitsAddend(), 1))
}

// decide calls limitkv.
func (s *Service) decide(ctx context.Context, r *rls.RateLimitRequest, list []asked) error {
	groups := s.groups(r, list)
	if len(groups) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	decided, err := s.decider.Decide(ctx, groups)
	if err != nil {
		return err
	}
	var rest []Group
	var drained []*asked
	for i := range list {
		a := &list[i]
		if a.group < 0 {
			continue
		}
		a.Decision = decided[a.group][a.take]
		a.over = a.never || a.Limited || a.hits == 0 && a.Remaining == 0
		if a.over && a.rest && a.hits > 1 && a.Remaining > 0 {
			t := groups[a.group].Takes[a.take]
			t.Cost = max(a.hits, a.Remaining)
			rest, drained = append(rest, Group{Takes: []Take{t}, Rest: true}), append(drained, a)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	if decided, err = s.decider.Decide(ctx, rest); err != nil {
		s.failed(err) // that the request is refused is already known
		return nil
	}
	for i, a := range drained {
		a.Remaining, a.Full = decided[i][0].Remaining, decided[i][0].Full
	}
	return nil
}

// groups makes the groups for limitkv: first one with all limits that can refuse, then one for each other limit.
func (s *Service) groups(r *rls.RateLimitRequest, list []asked) []Group {
	var common Group
	var alone []Group
	for i := range list {
		a := &list[i]
		if a.Limit == nil || a.Unlimited {
			continue
		}
		a.never = a.Count == 0 || a.hits > a.Capacity()
		a.over = a.never
		if a.never && !a.Shadow {
			common.Peek = true // a refused request takes nothing
		}
		if a.Count == 0 {
			a.Full = untilNext(a.Unit)
			continue
		}
		t := Take{key(s.opts.Prefix, r.GetDomain(), r.GetDescriptors()[i], a.Found), a.hits, a.Rule}
		if a.never {
			t.Cost = 0 // only reads what is left
		}
		if a.Shadow || s.opts.Alone {
			alone = append(alone, Group{Takes: []Take{t}})
			a.group = len(alone)
			continue
		}
		a.group, a.take = 0, common.add(t, a)
	}
	if len(common.Takes) > 0 {
		return append([]Group{common}, alone...)
	}
	for i := range list {
		list[i].group = max(list[i].group-1, -1)
	}
	return alone
}

// add adds a limiter to the group and returns its index. A descriptor that occurs twice in a request costs twice. If it occurs
// with two limits of its own, each is counted separately.
func (g *Group) add(t Take, a *asked) int {
	for i := range g.Takes {
		old := &g.Takes[i]
		switch {
		case old.Key != t.Key:
		case !slices.Equal(old.Rule, t.Rule):
			t.Key += "|" + strconv.FormatUint(uint64(a.Count), 10)
			return g.add(t, a)
		default:
			if old.Cost+t.Cost > a.Capacity() {
				a.never, a.over, g.Peek = true, true, true
			} else {
				old.Cost += t.Cost
			}
			return i
		}
	}
	g.Takes = append(g.Takes, t)
	return len(g.Takes) - 1
}

// untilNext returns how long the present unit of the clock lasts, for a limit without a counter.
func untilNext(u config.Unit) time.Duration {
	length := config.Length(u)
	return length - time.Duration(time.Now().UnixNano())%length
}

// reply makes the answer from the decisions.
func (s *Service) reply(r *rls.RateLimitRequest, list []asked) *rls.RateLimitResponse {
	out := &rls.RateLimitResponse{OverallCode: rls.RateLimitResponse_OK}
	out.Statuses = make([]*rls.RateLimitResponse_DescriptorStatus, len(list))
	var nearest *asked
	for i := range list {
		a := &list[i]
		st := &rls.RateLimitResponse_DescriptorStatus{Code: rls.RateLimitResponse_OK}
		out.Statuses[i] = st
		if a.Limit == nil {
			continue
		}
		s.metrics.counted(r.GetDomain(), a, s.opts.NearRatio)
		if a.Unlimited {
			st.LimitRemaining = math.MaxUint32
			continue
		}
		if a.over && !a.Shadow {
			st.Code = rls.RateLimitResponse_OVER_LIMIT
			out.OverallCode = st.Code
		}
		st.CurrentLimit = &rls.RateLimitResponse_RateLimit{Name: a.Name, RequestsPerUnit: a.Count, Unit: a.Unit}
		st.LimitRemaining = uint32(min(a.Remaining, math.MaxUint32))
		st.DurationUntilReset = durationpb.New(a.Full)
		if nearest == nil || nearer(a, nearest) {
			nearest = a
		}
	}
	if nearest != nil {
		out.ResponseHeadersToAdd = s.opts.Headers.of(nearest)
	}
	if s.opts.Shadow && out.OverallCode == rls.RateLimitResponse_OVER_LIMIT {
		out.OverallCode = rls.RateLimitResponse_OK
		s.metrics.shadowed.Inc()
	}
	return out
}

// nearer tells whether the headers should be about a rather than b: a refusal first, of several the longest one, else the
// limit with the least left.
func nearer(a, b *asked) bool {
	ra, rb := a.over && !a.Shadow, b.over && !b.Shadow
	if ra != rb {
		return ra
	}
	if ra {
		return a.Full > b.Full
	}
	return a.Remaining < b.Remaining
}

// failure is the answer when limitkv gave no reply.
func (s *Service) failure(r *rls.RateLimitRequest, err error) (*rls.RateLimitResponse, error) {
	code := rls.RateLimitResponse_OK
	switch s.opts.Failure {
	case FailError:
		return nil, status.Errorf(codes.Unavailable, "limitkv: %v", err)
	case FailDeny:
		if !s.opts.Shadow {
			code = rls.RateLimitResponse_OVER_LIMIT
		}
	}
	out := &rls.RateLimitResponse{OverallCode: code}
	for range r.GetDescriptors() {
		out.Statuses = append(out.Statuses, &rls.RateLimitResponse_DescriptorStatus{Code: code})
	}
	return out, nil
}

// failed counts a failure, and logs at most one a second.
func (s *Service) failed(err error) {
	s.metrics.errors.Inc()
	now := time.Now().Unix()
	if last := s.logged.Load(); last != now && s.logged.CompareAndSwap(last, now) {
		s.logf("limitkv does not answer: %v", err)
	}
}
