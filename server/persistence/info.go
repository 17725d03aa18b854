package persistence

// INFO's section persistence.

import (
	"github.com/limitkv/limitkv/engine/journal"
	"github.com/limitkv/limitkv/server/command"
)

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func ok(failed bool) string {
	if failed {
		return "err"
	}
	return "ok"
}

// Cuts returns how many snapshots and rewrites began in the background, and for how many microseconds the last one held all
// keys to begin.
func (f *Files) Cuts() (n, lastMicros int64) {
	return f.status.begun.Load(), f.status.beginMicros.Load()
}

func (f *Files) info(w *command.InfoWriter) {
	st := &f.status
	f.mu.Lock()
	saving, rewriting, again, files, current := f.saving, f.rewriting || f.starting, f.again, f.aof, f.current
	f.mu.Unlock()
	now := f.s.Keyspace.Clock.Now()
	since := func(began int64) int64 {
		if began == 0 {
			return -1
		}
		return (now - began) / 1e6
	}
	w.Section("Persistence")
	w.Line("loading", flag(f.s.Loading.On()))
	w.Line("async_loading", flag(f.s.Loading.Beside()))
	done, total, early := current.progress()
	w.Line("current_cow_peak", early)
	w.Line("current_cow_size", early)
	w.Line("current_cow_size_age", 0)
	w.Decimal("current_fork_perc", 100*float64(done)/float64(max(total, 1)), 2, "")
	w.Line("current_save_keys_processed", done)
	w.Line("current_save_keys_total", total)
	w.Line("rdb_changes_since_last_save", f.s.Keyspace.Dirty.Load()-st.dirtyAtSave.Load())
	w.Line("rdb_bgsave_in_progress", flag(saving))
	w.Line("rdb_last_save_time", st.lastSave.Load())
	w.Line("rdb_last_bgsave_status", ok(st.lastSaveFailed.Load()))
	w.Line("rdb_last_bgsave_time_sec", st.lastSaveSeconds.Load())
	w.Line("rdb_current_bgsave_time_sec", since(st.saveBegan.Load()))
	w.Line("rdb_saves", st.saves.Load())
	w.Line("rdb_last_cow_size", st.saveEarly.Load())
	w.Line("rdb_last_load_keys_expired", f.s.ExpiredKeys.Load())
	w.Line("rdb_last_load_keys_loaded", f.s.LoadedKeys.Load())
	w.Line("aof_enabled", flag(files != nil))
	w.Line("aof_rewrite_in_progress", flag(rewriting))
	// A log that was turned on counts as on once its first rewrite has ended.
	due := again || files != nil && files.State() == journal.Starting && !rewriting
	w.Line("aof_rewrite_scheduled", flag(due))
	w.Line("aof_last_rewrite_time_sec", st.lastRewriteSeconds.Load())
	w.Line("aof_current_rewrite_time_sec", since(st.rewriteBegan.Load()))
	w.Line("aof_last_bgrewrite_status", ok(st.lastRewriteFailed.Load()))
	w.Line("aof_rewrites", st.rewrites.Load())
	w.Line("aof_rewrites_consecutive_failures", st.rewriteFailures.Load())
	w.Line("aof_last_write_status", ok(f.failing.Load()))
	w.Line("aof_last_cow_size", st.rewriteEarly.Load())
	w.Line("module_fork_in_progress", 0)
	w.Line("module_fork_last_cow_size", 0)
	defer f.s.Loading.Info(w, now)
	if files == nil {
		return
	}
	size, _ := files.Size() // unknown is 0
	w.Line("aof_current_size", size)
	w.Line("aof_base_size", st.baseSize.Load())
	w.Line("aof_pending_rewrite", flag(due))
	w.Line("aof_buffer_length", files.Backlog())
	w.Line("aof_pending_bio_fsync", flag(files.Since() != 0))
	w.Line("aof_delayed_fsync", files.Delayed())
}
