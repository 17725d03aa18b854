package command

// Namespaces: separate keyspaces in one server, each for some of its connections, so that concurrent tests can share the
// server (LKV.NAMESPACE). A family that stores other things than keys, such as channels or functions, stores them per
// keyspace, in a PerKeyspace.

import (
	"slices"
	"strings"
	"sync"

	"github.com/limitkv/limitkv/engine"
)

// NamespacesMax is how many namespaces there can be: each uses about 230 KB.
const NamespacesMax = 256

// Namespace is one namespace.
type Namespace struct {
	Name     string
	Keyspace *engine.Keyspace
	// Port is the port whose connections begin in the namespace, 0 if there is none. Close closes it. Namespaces.mu guards
	// both.
	Port  int
	Close func()
}

// Namespaces is the registry of live namespaces, in the order in which they were made.
type Namespaces struct {
	mu  sync.Mutex
	all []*Namespace
	// onDrop is called with the keyspace of a namespace that was dropped.
	onDrop []func(ks *engine.Keyspace)
}

// All returns a copy of the list.
func (n *Namespaces) All() []*Namespace {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.all)
}

// Find finds a namespace by name, nil if there is none.
func (n *Namespaces) Find(name string) *Namespace {
	return n.find(func(ns *Namespace) bool { return ns.Name == name })
}

// At finds the namespace of a port, nil if there is none.
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

// Has tells whether a namespace is in the registry, that is, was not dropped.
func (n *Namespaces) Has(ns *Namespace) bool {
	return n.find(func(x *Namespace) bool { return x == ns }) != nil
}

func (n *Namespaces) has(ks *engine.Keyspace) bool {
	return n.find(func(ns *Namespace) bool { return ns.Keyspace == ks }) != nil
}

// Make finds a namespace by name, or makes it. It returns nil if there would be too many.
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

// Listen opens a port for a namespace with open, unless it has one, and returns the port.
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

// PortOf returns a namespace's port, 0 if there is none.
func (n *Namespaces) PortOf(ns *Namespace) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return ns.Port
}

// Drop removes a namespace with its port, its connections and its data. It reports whether the namespace existed.
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

// KeyspaceOf returns the keyspace of a session.
func (s *Server) KeyspaceOf(sess *Session) *engine.Keyspace {
	if ns := sess.Namespace(); ns != nil {
		return ns.Keyspace
	}
	return s.Keyspace
}

// ClientsOf lists the clients that a session may see: those of its namespace, or all if it has none.
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

// PerKeyspace stores a value for each keyspace. Main is the value for the server's own keyspace, found without a lock.
type PerKeyspace[T any] struct {
	Main T

	s    *Server
	init func(*T)
	mu   sync.Mutex
	more map[*engine.Keyspace]*T
}

// Begin must be called once, before all else. init initialises a T; nil means that its zero value is ready.
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

// Of returns the value for a keyspace.
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
		} // otherwise the namespace was dropped, and its session is about to end
	}
	return t
}

// All lists all values.
func (p *PerKeyspace[T]) All() []*T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := []*T{&p.Main}
	for _, t := range p.more {
		all = append(all, t)
	}
	return all
}
