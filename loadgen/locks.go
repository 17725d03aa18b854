package main

// Workloads of locks: LK.ACQUIRE and LK.RELEASE, compared with common alternatives: SET NX PX with an unlock script, and
// scripts like those of Redisson's RLock and RFairLock. A connection takes a random lock and releases it. The lock is free
// unless another connection has just taken it. Contended locks are in contended.go.

import "strings"

// lockLease is the lease of a lock, in ms.
const lockLease = "30000"

func lockWorkloads() []*workload {
	const key, owner = "lock:" + lockHole, "owner:" + ownerHole
	return []*workload{
		lockCycle("lk.mutex", "LK.ACQUIRE of a lock, and LK.RELEASE", true, nil, func(*setup) (take, release []string) {
			return []string{"LK.ACQUIRE", key, owner, lockLease}, []string{"LK.RELEASE", key, owner}
		}),
		{
			name: "lk.acquire", does: "LK.ACQUIRE of a lock, of which half are held by another", own: true, keys: 1000,
			prepare: func(c *wire, o *setup) error {
				p := command("LK.ACQUIRE", key, owner, lockLease+"00")
				return c.fill(o.keys, func(b []byte, i uint64) []byte { return p.append(b, i, i%2) })
			},
			maker: func(o *setup, connection uint64) maker {
				p, rnd, n := command("LK.ACQUIRE", key, owner, lockLease+"00"), o.random(connection), uint64(o.keys)
				return func(b []byte, _ uint64) []byte { return p.append(b, rnd.below(n), 1) }
			},
			refused: func(r *reply) bool { return r.first == 0 },
		},
		lockCycle("lk.shared", "LK.ACQUIRE of a lock for reading, and LK.RELEASE", true, nil, func(*setup) (take, release []string) {
			return []string{"LK.ACQUIRE", key, owner, lockLease, "SHARED"}, []string{"LK.RELEASE", key, owner}
		}),
		lockCycle("lock.plain", "SET NX PX of a lock, and the script that unlocks (unlock.lua)", false, []string{"unlock"},
			func(o *setup) (take, release []string) {
				return []string{"SET", key, owner, "NX", "PX", lockLease}, []string{"EVALSHA", o.shas["unlock"], "1", key, owner}
			}),
		lockCycle("lock.redisson", "a lock of the shape of Redisson's RLock (rlock.lua, runlock.lua)", false, []string{"rlock", "runlock"},
			func(o *setup) (take, release []string) {
				return []string{"EVALSHA", o.shas["rlock"], "1", key, lockLease, owner},
					[]string{"EVALSHA", o.shas["runlock"], "2", key, "channel", lockLease, owner}
			}),
		lockCycle("lock.redisson.fair", "a lock of the shape of Redisson's RFairLock (fairlock.lua, runfairlock.lua)", false, []string{"fairlock", "runfairlock"},
			func(o *setup) (take, release []string) {
				const line, until, now = "line:" + key, "until:" + key, "1700000000000"
				return []string{"EVALSHA", o.shas["fairlock"], "3", key, line, until, lockLease, owner, now, "300000"},
					[]string{"EVALSHA", o.shas["runfairlock"], "4", key, line, until, "channel", lockLease, owner, now}
			}),
	}
}

// The holes for a lock's name and an owner's name have different widths, by which they are distinguished.
const (
	lockHole  = "###########"
	ownerHole = "##########"
)

// stranger makes a connection's owner one that holds no lock.
const stranger = 1_000_000

// lockCycle is a workload whose connections take a lock and release it. In between another owner tries to release it.
func lockCycle(name, does string, own bool, scripts []string, requests func(o *setup) (take, release []string)) *workload {
	return &workload{
		name: name, does: does, own: own, keys: 10_000,
		prepare: loading(scripts...),
		maker: func(o *setup, connection uint64) maker {
			taking, releasing := requests(o)
			take, release := command(taking...), command(releasing...)
			rnd, key, step := o.random(connection), uint64(0), 0
			request := func(b []byte, p *pattern, owner uint64) []byte {
				start := len(b)
				b = append(b, p.text...)
				for _, h := range p.holes {
					n := owner
					if h.width == len(lockHole) {
						n = key
					}
					digits(b[start+h.at:start+h.at+h.width], n)
				}
				return b
			}
			return func(b []byte, _ uint64) []byte {
				step++
				switch step {
				case 1:
					key = rnd.below(uint64(o.keys))
					return request(b, take, connection)
				case 2:
					return request(b, release, connection+stranger)
				}
				step = 0
				return request(b, release, connection)
			}
		},
		outside: func(o *setup) outsideLoad {
			take, release := requests(o)
			by := func(request []string, owner string) (filled []string) {
				for _, arg := range request {
					filled = append(filled, strings.Replace(strings.Replace(arg, lockHole, "__rand_1st__", 1), ownerHole, owner, 1))
				}
				return filled
			}
			const owner, stranger = "0000000001", "0000000002"
			return outsideLoad{commands: [][]string{by(take, owner), by(release, stranger), by(release, owner)}}
		},
		refused: func(r *reply) bool { return r.null || r.kind == ':' && r.n != 1 || r.kind == '*' && r.first == 0 },
	}
}
