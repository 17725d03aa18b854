package command

// Namespaces: keyspaces of their own in one server, each for some of its
// connections, so that tests which run at once can share it (LKV.NAMESPACE).
// What a family keeps beside keys – channels, functions – it keeps by keyspace,
// in a PerKeyspace.

import (
	"slices"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine"
)

// NamespacesMax is how many namespaces there can be: each takes some 230 KB.
const NamespacesMax = 256

// Namespace is one of them.
type Namespace struct {
	Name     string
	Keyspace *engine.Keyspace
	// Port is where connections are the namespace's from their beginning, 0 for
	// none, and Close ends that. Namespaces.mu guards both.
	Port  int
	Close func()
}

// Namespaces are those that there are, by name and in order of making.
type Namespaces struct {
	mu  sync.Mutex
	all []*Namespace
	// onDrop is called with the keyspace of one that is gone.
	onDrop []func(ks *engine.Keyspace)
}

// All lists the namespaces.
func (n *Namespaces) All() []*Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// Find finds a namespace by name, nil if there is none.
func (n *Namespaces) Find(name string) *Namespace {
	return n.find(func(ns *Namespace) bool { return ns.Name == name })
}

// At finds the namespace whose connections come by a port, nil for none.
func (n *Namespaces) At(port int) *Namespace {
	return n.find(func(ns *Namespace) bool { return ns.Port == port })
}

func (n *Namespaces) find(is func(ns *Namespace) bool) *Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.IndexFunc(n.all, is); i >= 0 {
		return n.all[i]
	}
	return nil
}

// Has tells whether a namespace has not been dropped.
func (n *Namespaces) Has(ns *Namespace) bool {
	return n.find(func(x *Namespace) bool { return x == ns }) != nil
}

func (n *Namespaces) has(ks *engine.Keyspace) bool {
	return n.find(func(ns *Namespace) bool { return ns.Keyspace == ks }) != nil
}

// Make finds a namespace by name and makes it if there is none. It returns nil
// if there would be too many.
func (n *Namespaces) Make(s *Server, name string) *Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	if i := slices.IndexFunc(n.all, func(ns *Namespace) bool { return ns.Name == name }); i >= 0 {
		return n.all[i]
	}
	if len(n.all) == NamespacesMax {
		return nil
	}
	ns := &Namespace{Name: strings.Clone(name), Keyspace: s.Keyspace.Sibling()}
	n.all = append(n.all, ns)
	return ns
}

// Listen gives a namespace the port that open returns, unless it has one, and
// returns it.
func (n *Namespaces) Listen(ns *Namespace, open func() (port int, end func(), err error)) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ns.Port == 0 {
		port, end, err := open()
		if err != nil {
			return 0, err
		}
		ns.Port, ns.Close = port, end
	}
	return ns.Port, nil
}

// PortOf is a namespace's port, 0 for none.
func (n *Namespaces) PortOf(ns *Namespace) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return ns.Port
}

// Drop ends a namespace: its port, its connections and all that it has. It
// reports whether it was there.
func (n *Namespaces) Drop(s *Server, ns *Namespace) bool {
	n.mu.Lock()
	i := slices.Index(n.all, ns)
	if i < 0 {
		n.mu.Unlock()
		return false
	}
	n.all = slices.Delete(n.all, i, i+1)
	end := ns.Close
	n.mu.Unlock()
	if end != nil {
		end()
	}
	for _, sess := range s.Clients.All() {
		if sess.Namespace() == ns {
			s.Kill(sess)
		}
	}
	ns.Keyspace.Retire()
	for _, fn := range n.onDrop {
		fn(ns.Keyspace)
	}
	return true
}

// KeyspaceOf is the keyspace that a session's commands work on.
func (s *Server) KeyspaceOf(sess *Session) *engine.Keyspace {
	if ns := sess.Namespace(); ns != nil {
		return ns.Keyspace
	}
	return s.Keyspace
}

// ClientsOf lists the clients that a session may see: of its own namespace, or,
// outside of all, every one.
func (s *Server) ClientsOf(sess *Session) []*Session {
	list := s.Clients.All()
	if ns := sess.Namespace(); ns != nil {
		return slices.DeleteFunc(list, func(x *Session) bool { return x.Namespace() != ns })
	}
	if p := s.Clients.Primary.Load(); p != nil {
		at, _ := slices.BinarySearchFunc(list, p.ID, func(x *Session, id int64) int { return int(x.ID - id) })
		list = slices.Insert(list, at, p)
	}
	return list
}

// PerKeyspace is what a family keeps for each keyspace. Main is that of the
// server's own, which is found without a lock.
type PerKeyspace[T any] struct {
	Main T

	s    *Server
	init func(*T)
	mu   sync.Mutex
	more map[*engine.Keyspace]*T
}

// Begin is called once, before all else, with what makes a T ready (nil: its zero
// value is).
func (p *PerKeyspace[T]) Begin(s *Server, init func(*T)) {
	p.s, p.init = s, init
	if init == nil {
		p.init = func(*T) {}
	}
	p.init(&p.Main)
	s.Mutexes = append(s.Mutexes, &p.mu)
	s.Namespaces.onDrop = append(s.Namespaces.onDrop, func(ks *engine.Keyspace) {
		p.mu.Lock()
		delete(p.more, ks)
		p.mu.Unlock()
	})
}

// Of is what is kept for a keyspace.
func (p *PerKeyspace[T]) Of(ks *engine.Keyspace) *T {
	if ks == p.s.Keyspace {
		return &p.Main
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.more[ks]
	if t == nil {
		t = new(T)
		p.init(t)
		if p.s.Namespaces.has(ks) {
			if p.more == nil {
				p.more = make(map[*engine.Keyspace]*T)
			}
			p.more[ks] = t
		} // else it is gone, and who asks is about to go
	}
	return t
}

// All lists what is kept.
func (p *PerKeyspace[T]) All() []*T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []*T{&p.Main}
	for _, t := range p.more {
		all = append(all, t)
	}
	return all
}
