// Package scripting, internal to the server, is EVAL, EVALSHA, FCALL, their read-only forms, SCRIPT and
// FUNCTION.
//
// A script takes only the locks of its KEYS if analysis proves that it touches no other keys, and all locks otherwise. It
// begins on its event loop. Once it takes long it keeps its goroutine, and the loop continues on another one.
package scripting

import (
	"math"
	"sync/atomic"

	"github.com/limitkv/limitkv/engine"
	"github.com/limitkv/limitkv/luavm"
	"github.com/limitkv/limitkv/luavm/analysis"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/command"
)

type family struct {
	s          *server.Server
	cache      cache
	registries command.PerKeyspace[registry]
	timeLimit  *atomic.Int64 // ms until others get BUSY
	compress   *atomic.Bool
	memoryMax  *atomic.Int64 // bytes that a script may make the heap grow by
	workers    atomic.Int64  // made so far
	finder     analysis.KeyFinder
}

// worker is what a command.Worker has for scripts.
type worker struct {
	vm      *luavm.VM
	scripts local
	called  called
	library *luavm.Library // compiled for the FUNCTION LOAD that comes next
	flushes int64          // cache.flushes when vm was made
	host    host
	watch   watch
	slot    int // of script.runs
}

// Commands are the rows of the family.
func Commands(s *server.Server) []*command.Command {
	f := &family{s: s, compress: s.Config.Compression()}
	f.cache.bySHA = make(map[string]*script)
	f.finder = f.keys // once, because a method value is allocated
	s.Mutexes = append(s.Mutexes, &f.cache.mu)
	f.registries.Begin(s.Server, func(r *registry) { r.now.Store(newLibraries()) })
	f.timeLimit = s.Config.Int("lua-time-limit", 5000, 0, math.MaxInt64, "milliseconds a script may hold keys before others are answered BUSY")
	s.Config.Alias("lua-time-limit", "busy-reply-threshold")
	scope := s.Config.Enum("busy-reply-scope", "server", []string{"server", "keys"}, "whom a script that is over that time makes the server answer BUSY: everybody, or those who want the keys that it holds")
	s.Config.OnChange(func() { s.Long.KeysOnly.Store(*scope.Load() == "keys") }, "busy-reply-scope")
	s.Functions = f
	f.memoryMax = s.Config.Memory("script-memory-max", 1<<30, 1<<20, 1<<62, "bytes a script may keep in memory, beside the keys that it writes")
	s.InfoMemory = append(s.InfoMemory, f.infoMemory)
	s.OtherMemory = append(s.OtherMemory, func() int64 { return f.memory(s.Keyspace).total() })
	s.InfoStats = append(s.InfoStats, func(w *command.InfoWriter) { w.Line("evicted_scripts", f.cache.evicted.Load()) })
	return []*command.Command{
		f.evalRow("eval", "2.6.0", "Runs a Lua script.", false, false),
		f.evalRow("evalsha", "2.6.0", "Runs a cached Lua script, named by its SHA-1.", true, false),
		f.evalRow("eval_ro", "7.0.0", "Runs a Lua script that may not write.", false, true),
		f.evalRow("evalsha_ro", "7.0.0", "Runs a cached Lua script, named by its SHA-1, that may not write.", true, true),
		f.scriptRow(),
		f.fcallRow("fcall", "Calls a function.", false),
		f.fcallRow("fcall_ro", "Calls a function that does not write.", true),
		f.functionRow(),
	}
}

// worker is the family's part of the context's worker. SCRIPT FLUSH gives it a
// new interpreter, as in Redis, so that what scripts set in libraries (cjson's
// limits) is gone.
func (f *family) worker(c *command.Ctx) *worker {
	w, ok := c.Worker.Lua.(*worker)
	if flushes := f.cache.flushes.Load(); !ok || w.flushes != flushes {
		fresh := &worker{
			vm:      luavm.New(vmConfig),
			flushes: flushes,
			slot:    int(f.workers.Add(1)) % runSlots,
		}
		fresh.watch.f = f
		fresh.host.watch = &fresh.watch
		fresh.vm.Watch(fresh.watch.ask)
		fresh.vm.Room(fresh.watch.room)
		w = fresh
		c.Worker.Lua = w
	}
	return w
}

// vmConfig is what interpreters tell scripts about the server. Redis's os.clock is the processor time of the process. Scripts
// measure with it how long they run; the time since the start is as good for that, and four times faster.
var vmConfig = luavm.Config{
	Version: command.RedisVersion, VersionNum: redisVersionNum,
	CPUSeconds: func() float64 { return float64(engine.Monotonic()) / 1e6 },
}

// redisVersionNum is command.RedisVersion as redis.REDIS_VERSION_NUM has it.
const redisVersionNum = 0x00080006
