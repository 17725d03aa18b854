package main

// The ways to reach a server, which every library is tried on: passwords, users, TLS with and without a certificate of
// the client's own, a unix socket. What a way must refuse is as much of a check as what it lets in.

import (
	"crypto/tls"
	"fmt"
	"strings"
)

// way is how a client connects.
type way struct {
	area, name     string
	network, addr  string
	user, password string
	tls            *tls.Config

	refused string // what the error says of a client that must not get in
}

func ways() []way {
	return []way{
		{area: "connect", name: "TCP", addr: plain},
		{area: "auth", name: "password", addr: secret, password: password},
		{area: "auth", name: "ACL user", addr: secret, user: user, password: userPassword},
		{area: "auth", name: "a wrong password is refused", addr: secret, password: "wrong", refused: "WRONGPASS"},
		{area: "auth", name: "no password is refused", addr: secret, refused: "NOAUTH"},
		{area: "tls", name: "server certificate verified", addr: secure, tls: trusting},
		{area: "tls", name: "client certificate", addr: mutual, tls: certified},
		{area: "tls", name: "no client certificate is refused", addr: mutual, tls: trusting, refused: "certificate required"},
		{area: "unix", name: "unix socket", network: "unix", addr: socket},
	}
}

// ways runs a check for each way: use connects and does something that needs the server. protocols, if any, are in the
// check's name and decide the area of the plain way.
func (c client) ways(use func(w way, protocol int) error, protocols ...int) {
	if len(protocols) == 0 {
		protocols = []int{0}
	}
	for _, w := range ways() {
		if w.network == "" {
			w.network = "tcp"
		}
		for _, protocol := range protocols {
			area, name := w.area, w.name
			if protocol != 0 {
				name += fmt.Sprintf(", RESP%d", protocol)
			}
			if area == "connect" && protocol == 3 {
				area = "resp3"
			}
			c.check(area, name, func() error {
				err := use(w, protocol)
				switch {
				case w.refused == "":
					return err
				case err == nil:
					return fmt.Errorf("it was let in")
				case !strings.Contains(err.Error(), w.refused) && w.tls == nil:
					return fmt.Errorf("refused by %w, not %s", err, w.refused)
				}
				return nil // a peer that closes at once may be seen as a reset connection before its alert is
			})
		}
	}
}
