package delayqueue

// Schedules: DQ.ADD with EVERY or CRON.

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/engine/cron"
	"github.com/limitkv/limitkv/engine/delayqueue"
	"github.com/limitkv/limitkv/server/command"
)

// plansShown is how many schedules DQ.INFO shows.
const plansShown = 1000

// check returns an error text if a schedule's texts are wrong, before anything is changed.
func (o *addArgs) check() (text string) {
	if o.cron == nil {
		return ""
	}
	if _, err := cron.Parse(string(o.cron)); err != nil {
		var wrong *cron.Error
		if errors.As(err, &wrong) {
			return "ERR CRON has " + wrong.Error()
		}
	}
	if o.zone != nil {
		if _, err := delayqueue.LoadZone(string(o.zone)); err != nil {
			return errZone
		}
	}
	return ""
}

// plan adds a schedule.
func (f *family) plan(c *command.Ctx, key []byte, q *delayqueue.Queue, o *addArgs) {
	s := delayqueue.Schedule{ // copies, so that o stays on its caller's stack
		ID: bytes.Clone(o.id), Payload: bytes.Clone(o.payload), EveryMicros: o.every, Cron: string(o.cron), Zone: string(o.zone),
		Extra: delayqueue.Extra{Group: bytes.Clone(o.extra.Group), Prio: o.extra.Prio, ExpireMicros: o.extra.ExpireMicros},
	}
	word := wordReplan
	if o.mode == delayqueue.OnlyNew || !q.Replan(&s) {
		word = wordPlan
		if added, err := q.Schedule(c.Now, &s, o.mode); err != nil || !added {
			c.Null()
			return
		}
	}
	if o.extra.ExpireMicros > 0 {
		rearm(&c.View, key, q)
	}
	c.Changed(key, engine.EventDelayQueue, "dq.add")
	if c.Logging() {
		w := logged(&c.View, key, word, 6)
		w.Bytes(s.ID)
		w.Int(s.EveryMicros)
		w.Text(s.Cron)
		w.Text(s.Zone)
		w.Bytes(s.Payload)
		w.Bytes(o.extra.Append(nil))
		w.End()
	}
	c.Bulk(o.id)
}

// planText is when a schedule is due, in the syntax of DQ.ADD.
func planText(s *delayqueue.Schedule) string {
	switch {
	case s == nil:
		return ""
	case s.EveryMicros > 0:
		return "EVERY " + strconv.FormatInt(s.EveryMicros/1000, 10)
	case s.Zone != "":
		return "CRON " + s.Cron + " TZ " + s.Zone
	}
	return "CRON " + s.Cron
}

// replyPlans appends the schedules of a queue: id, when, and the time of the next or
// present occurrence.
func replyPlans(c *command.Ctx, q *delayqueue.Queue) {
	list := q.Schedules()
	list = list[:min(len(list), plansShown)]
	c.Array(len(list))
	for _, s := range list {
		c.Array(3)
		c.Bulk(s.ID)
		c.BulkString(planText(s))
		c.Int(s.NextMicros / 1000)
	}
}
