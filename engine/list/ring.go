package list

// A ring of nodes: adding and removing takes constant time at both ends, and elsewhere moves the shorter side.

// nodes is a sequence of nodes. The zero value is empty.
type nodes struct {
	ring  []node // a power of two long
	first int
	n     int
}

func (r *nodes) at(i int) *node { return &r.ring[(r.first+i)&(len(r.ring)-1)] }

// insert makes x the node with index i.
func (r *nodes) insert(i int, x node) {
	if r.n == len(r.ring) {
		r.resize(max(2, 2*r.n))
	}
	if i < r.n/2 {
		r.first = (r.first - 1) & (len(r.ring) - 1)
		for j := range i {
			*r.at(j) = *r.at(j + 1)
		}
	} else {
		for j := r.n; j > i; j-- {
			*r.at(j) = *r.at(j - 1)
		}
	}
	r.n++
	*r.at(i) = x
}

// remove removes the node with index i.
func (r *nodes) remove(i int) {
	if i < r.n/2 {
		for j := i; j > 0; j-- {
			*r.at(j) = *r.at(j - 1)
		}
		*r.at(0) = node{}
		r.first = (r.first + 1) & (len(r.ring) - 1)
	} else {
		for j := i; j < r.n-1; j++ {
			*r.at(j) = *r.at(j + 1)
		}
		*r.at(r.n - 1) = node{}
	}
	r.n--
	if len(r.ring) > 8 && r.n < len(r.ring)/4 {
		r.resize(len(r.ring) / 2)
	}
}

func (r *nodes) resize(size int) {
	ring := make([]node, size)
	for i := range r.n {
		ring[i] = *r.at(i)
	}
	r.ring, r.first = ring, 0
}
