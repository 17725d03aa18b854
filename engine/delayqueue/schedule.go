// This file is schedules: entries that come again and again, after each interval (EVERY) or at the times of a CRON
// expression.
//
// One occurrence of a schedule is in the queue at a time: an entry whose id is the schedule's, an @ and the time in ms.
// When its work is done, or it is given up, the next one is added at once, with its time. So nothing has to wake up for
// a schedule, and occurrences behave like all entries. A late occurrence also counts for those that were missed before
// it was delivered. Of those that fall due while it is leased, only the last one is delivered afterwards.

package delayqueue

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/limitkv/limitkv/engine/cron"
	"github.com/limitkv/limitkv/engine/table"
	"github.com/limitkv/limitkv/engine/zone"
)

// Schedule says when an entry comes again, and what it is then.
type Schedule struct {
	ID, Payload []byte
	EveryMicros int64 // 0: by Cron
	Cron, Zone  string
	Extra       Extra
	// BaseMicros is what EveryMicros counts from.
	BaseMicros int64
	// AfterMicros is the time up to which occurrences are past.
	AfterMicros int64
	// NextMicros is the time of the occurrence that is in the queue, 0 if none is.
	NextMicros int64
}

// schedule is a Schedule with its texts parsed.
type schedule struct {
	Schedule
	cron cron.Schedule
	zone *time.Location
}

// LoadZone finds a time zone by its IANA name.
func LoadZone(name string) (*time.Location, error) {
	at, err := zone.Load(name)
	if err != nil {
		return nil, ErrZone
	}
	return at, nil
}

// open parses a schedule's texts.
func (s *Schedule) open() (*schedule, error) {
	o := &schedule{Schedule: *s, zone: time.UTC}
	o.ID, o.Payload, o.Extra.Group = bytes.Clone(s.ID), bytes.Clone(s.Payload), bytes.Clone(s.Extra.Group)
	o.Extra.Occurrence = true
	if s.EveryMicros > 0 {
		return o, nil
	}
	var err error
	if o.cron, err = cron.Parse(s.Cron); err == nil && s.Zone != "" {
		o.zone, err = LoadZone(s.Zone)
	}
	return o, err
}

// after is the first time of the schedule after another time, 0 if there is none.
func (s *schedule) after(micros int64) (at int64) {
	switch {
	case s.EveryMicros == 0:
		next := s.cron.Next(time.UnixMicro(micros), s.zone)
		if next.IsZero() {
			return 0
		}
		at = next.UnixMicro()
	case micros < s.BaseMicros:
		at = s.BaseMicros + s.EveryMicros
	default:
		at = s.BaseMicros + ((micros-s.BaseMicros)/s.EveryMicros+1)*s.EveryMicros
	}
	if at > TimeMax {
		return 0
	}
	return at
}

// next is the time of the next occurrence: the last one that was missed or, if none was, the first in the future.
func (s *schedule) next(now int64) int64 {
	at := s.after(s.AfterMicros)
	if at == 0 || at > now {
		return at
	}
	if s.EveryMicros > 0 {
		return at + (now-at)/s.EveryMicros*s.EveryMicros
	}
	// Look back over twice as long each time.
	for back := int64(60e6); ; back *= 2 {
		from := max(now-back, s.AfterMicros)
		last := s.after(from)
		if last > now && from > s.AfterMicros {
			continue
		}
		for later := s.after(last); later != 0 && later <= now; later = s.after(last) {
			last = later
		}
		return last
	}
}

// occurrence appends the id of an occurrence.
func occurrence(dst, id []byte, dueMicros int64) []byte {
	return strconv.AppendInt(append(append(dst, id...), '@'), dueMicros/1000, 10)
}

// scheduleOf is the schedule whose present occurrence has this id, nil if there is none.
func (q *Queue) scheduleOf(id []byte) *schedule {
	i := bytes.LastIndexByte(id, '@')
	if i < 0 {
		return nil
	}
	s := q.schedules[string(id[:i])]
	if s == nil || s.NextMicros == 0 || !bytes.Equal(occurrence(nil, s.ID, s.NextMicros), id) {
		return nil
	}
	return s
}

// spawn adds the next occurrence of a schedule.
func (q *Queue) spawn(s *schedule, now int64) {
	for s.NextMicros = s.next(now); s.NextMicros != 0; s.NextMicros = s.next(now) {
		id := occurrence(nil, s.ID, s.NextMicros)
		old := q.table.Get(id)
		if old.None() {
			r := newRecord(id, s.Payload, s.Extra.Append(nil))
			q.table.Add(r)
			count(&q.totals.Added, 1)
			q.put(r, waiting, s.NextMicros)
			return
		}
		s.AfterMicros = max(s.AfterMicros, s.NextMicros)
	}
	delete(q.schedules, string(s.ID)) // it never comes again
}

// pass records that an occurrence is past, because it is delivered or given up before: the schedule's times up to its
// own are past. It does so once. Later the occurrence's name says nothing, because the clock may have been set back, or
// the schedule replaced by one that counts from its own beginning.
//
// If the clock was set back before, an occurrence with EVERY may be named after a time too far from now and from
// AfterMicros, which was moved: then the times up to now are past. An occurrence that is far from now only because
// those before it were removed follows AfterMicros at once. pass returns the schedule, nil if there is none.
func (q *Queue) pass(r table.Record, now int64) *schedule {
	s := q.scheduleOf(r.Key())
	if s == nil || placeOf(r) != waiting || attemptOf(r) > 0 {
		return s
	}
	reached := s.NextMicros
	if s.EveryMicros > 0 && reached >= now+s.EveryMicros+1000 && reached > s.AfterMicros+s.EveryMicros {
		reached = now
	}
	s.AfterMicros = max(s.AfterMicros, reached)
	return s
}

// delivered records that an entry is delivered. It counts for all times that its schedule has missed until now.
func (q *Queue) delivered(r table.Record, now int64) {
	if s := q.pass(r, now); s != nil {
		s.AfterMicros = max(s.AfterMicros, now)
	}
}

// follow adds the occurrence after one that has left.
func (q *Queue) follow(r table.Record, now int64) {
	if s := q.pass(r, now); s != nil {
		q.spawn(s, now)
	}
}

// Schedule makes a schedule, or replaces the schedule or the entry with its id. A leased occurrence stays with its
// worker. It returns whether the condition was met. The error concerns the schedule's texts.
func (q *Queue) Schedule(now int64, plan *Schedule, mode Mode) (added bool, err error) {
	s, err := plan.open()
	if err != nil {
		return false, err
	}
	old := q.schedules[string(s.ID)]
	entry := q.find(s.ID, 0)
	there := old != nil || !entry.None()
	if there && mode == OnlyNew || !there && mode == OnlyOld {
		return false, nil
	}
	if q.dropBehind(s.ID); !entry.None() && placeOf(entry) != leased { // a leased one stays
		defer q.unpin(q.pin(entry))
		q.take(entry)
		q.leave(entry, now, false)
	}
	s.BaseMicros, s.AfterMicros, s.NextMicros = min((now+999)/1000*1000, TimeMax), now, 0
	if old != nil {
		defer q.unpin(q.pin(q.present(old)))
		s.NextMicros = q.withdraw(old)
	}
	if q.schedules == nil {
		q.schedules = map[string]*schedule{}
	}
	q.schedules[string(s.ID)] = s
	if s.NextMicros == 0 {
		q.spawn(s, now)
	}
	return q.Scheduled(s.ID), nil
}

// Replan changes the entries of a schedule, if there is one with the same times. It keeps these times, so that a
// program can make its schedules at each start. It also changes an occurrence that waits.
func (q *Queue) Replan(plan *Schedule) (kept bool) {
	s := q.schedules[string(plan.ID)]
	if s == nil || s.EveryMicros != plan.EveryMicros || s.Cron != plan.Cron || s.Zone != plan.Zone {
		return false
	}
	s.Payload, s.Extra = bytes.Clone(plan.Payload), plan.Extra
	s.Extra.Group, s.Extra.Occurrence = bytes.Clone(plan.Extra.Group), true
	if r := q.present(s); !r.None() && placeOf(r) == waiting {
		x := s.Extra
		x.Reason = extraOf(r).Reason
		defer q.unpin(q.pin(r))
		q.take(r)
		q.put(q.revise(r, s.Payload, &x), waiting, dueAt(r))
	}
	return true
}

// present is the occurrence of a schedule that is in the queue.
func (q *Queue) present(s *schedule) table.Record {
	return q.find(occurrence(nil, s.ID, s.NextMicros), 0)
}

// withdraw removes the present occurrence of a schedule that ends, unless a worker has it: then it returns its time.
func (q *Queue) withdraw(s *schedule) (leasedMicros int64) {
	r := q.present(s)
	switch {
	case r.None():
		return 0
	case placeOf(r) != waiting:
		return s.NextMicros
	}
	delete(q.schedules, string(s.ID)) // so that none follows
	q.take(r)
	q.leave(r, 0, false)
	return 0
}

// Unschedule ends a schedule.
func (q *Queue) Unschedule(id []byte) bool {
	s := q.schedules[string(id)]
	if s == nil {
		return false
	}
	q.withdraw(s)
	delete(q.schedules, string(id))
	return true
}

// Scheduled says whether there is a schedule with this id.
func (q *Queue) Scheduled(id []byte) bool { return q.schedules[string(id)] != nil }

// ScheduleOf is the schedule whose present occurrence is an entry, nil if there is none.
func (q *Queue) ScheduleOf(id []byte) *Schedule {
	if s := q.scheduleOf(id); s != nil {
		return &s.Schedule
	}
	return nil
}

// Schedules returns all schedules, in order of their ids.
func (q *Queue) Schedules() []*Schedule {
	if len(q.schedules) == 0 {
		return nil
	}
	var list []*Schedule
	for s := range maps.Values(q.schedules) {
		list = append(list, &s.Schedule)
	}
	slices.SortFunc(list, func(a, b *Schedule) int { return cmp.Compare(string(a.ID), string(b.ID)) })
	return list
}

// RestoreSchedule adds a schedule that Schedules returned, after the entries.
func (q *Queue) RestoreSchedule(plan *Schedule) error {
	s, err := plan.open()
	if err != nil || CheckID(s.ID) != nil || q.schedules[string(s.ID)] != nil || !q.kept && q.Len() == 0 {
		return ErrCorrupt
	}
	if !span(s.EveryMicros) || !moment(s.BaseMicros) || !moment(s.AfterMicros) || !moment(s.NextMicros) {
		return ErrCorrupt
	}
	r := q.find(occurrence(nil, s.ID, s.NextMicros), 0)
	if r.None() || !hasExtra(r) {
		return ErrCorrupt
	}
	if x := extraOf(r); !x.Occurrence {
		return ErrCorrupt
	}
	if q.schedules == nil {
		q.schedules = map[string]*schedule{}
	}
	q.schedules[string(s.ID)] = s
	return nil
}
