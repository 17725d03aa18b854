package latency

// INFO latencystats.

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/limitkv/limitkv/server/command"
	"github.com/limitkv/limitkv/server/params"
)

func (m *Monitor) declareStats() {
	c := m.s.Config
	m.tracking = c.Bool("latency-tracking", true, "tell in INFO latencystats how long commands take")
	m.percentiles.Store(&[]float64{50, 99, 99.9})
	m.s.AddInfo(command.InfoSection{Name: "latencystats", Write: m.infoLatencyStats})
	c.Add(&params.Param{
		Name: "latency-tracking-info-percentiles", Words: true, Help: "percentiles that INFO latencystats tells",
		Get: func() string {
			var words []string
			for _, p := range *m.percentiles.Load() {
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
			m.percentiles.Store(&list)
			return nil
		},
	})
}

func (m *Monitor) infoLatencyStats(w *command.InfoWriter) {
	w.Section("Latencystats")
	if !m.tracking.Load() {
		return
	}
	for _, cmd := range m.s.Table.All() {
		t := m.s.Workers.Times(cmd)
		if t.Calls == 0 {
			continue
		}
		var fields []string
		for _, p := range *m.percentiles.Load() {
			nanos := NearNanos(max(1, t.Percentile(p)*1000))
			fields = append(fields, fmt.Sprintf("p%s=%.3f", strconv.FormatFloat(p, 'f', -1, 64), float64(nanos)/1000))
		}
		w.Line("latency_percentiles_usec_"+cmd.FullName(), strings.Join(fields, ","))
	}
}

// NearNanos returns the highest time that Redis's histograms, which have two significant digits, do not distinguish from n
// nanoseconds.
func NearNanos(n int64) int64 {
	width := int64(1)
	for n/width >= 256 {
		width *= 2
	}
	return n/width*width + width - 1
}
