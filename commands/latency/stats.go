package latency

// INFO latencystats.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

// percentiles are those that INFO latencystats tells.
type percentiles struct {
	list atomic.Pointer[[]float64]
}

func (f *family) declareStats() {
	c := f.s.Config
	f.tracking = c.Bool("latency-tracking", true, "tell in INFO latencystats how long commands take")
	f.percentiles.list.Store(&[]float64{50, 99, 99.9})
	f.s.AddInfo(command.InfoSection{Name: "latencystats", Write: f.infoLatencyStats})
	c.Add(&params.Param{
		Name: "latency-tracking-info-percentiles", Words: true, Help: "percentiles that INFO latencystats tells",
		Get: func() string {
			var words []string
			for _, p := range *f.percentiles.list.Load() {
				words = append(words, strconv.FormatFloat(p, 'f', -1, 64))
			}
			return strings.Join(words, " ")
		},
		Set: func(value string) error {
			list := []float64{}
			for _, word := range strings.Fields(value) {
				p, err := strconv.ParseFloat(word, 64)
				if err != nil {
					return errors.New("Invalid latency-tracking-info-percentiles parameters")
				}
				if !(p >= 0 && p <= 100) {
					return errors.New("latency-tracking-info-percentiles parameters should sit between [0.0,100.0]")
				}
				list = append(list, p)
			}
			f.percentiles.list.Store(&list)
			return nil
		},
	})
}

func (f *family) infoLatencyStats(w *command.InfoWriter) {
	w.Section("Latencystats")
	if !f.tracking.Load() {
		return
	}
	for _, cmd := range f.s.Table.All() {
		t := f.s.Workers.Times(cmd)
		if t.Calls == 0 {
			continue
		}
		var fields []string
		for _, p := range *f.percentiles.list.Load() {
			nanos := nearNanos(max(1, t.Percentile(p)*1000))
			fields = append(fields, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'f', -1, 64), float64(nanos)/1000))
		}
		w.Line("latency_percentiles_usec_"+cmd.FullName(), strings.Join(fields, ","))
	}
}
