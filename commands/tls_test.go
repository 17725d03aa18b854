package commands_test

// TLS: a client with the right certificate gets in, one without does not, and
// a configuration that cannot work is refused.

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitkv/limitkv/commands"
	"github.com/limitkv/limitkv/server"
	"github.com/limitkv/limitkv/server/params"
)

// certificate makes a self-signed certificate, in two files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"},
		KeyUsage:    x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", keyDER)
}

// freePort is a port that is free at the moment.
func freePort(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	return port
}

// onlyTLS is a server that listens on a TLS port only, with these settings.
func onlyTLS(t *testing.T, settings ...params.Setting) *server.Server {
	t.Helper()
	s, err := commands.New(server.Options{Settings: append([]params.Setting{
		{Name: "save"}, {Name: "port", Value: "0"}, {Name: "tls-port", Value: freePort(t)},
	}, settings...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	s := onlyTLS(t, params.Setting{Name: "tls-cert-file", Value: cert}, params.Setting{Name: "tls-key-file", Value: key},
		params.Setting{Name: "tls-ca-cert-file", Value: cert})
	addrs, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	if len(addrs) != 1 {
		t.Fatalf("listens on %v: port 0 beside tls-port means no plain port", addrs)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	b, _ := os.ReadFile(cert)
	roots.AppendCertsFromPEM(b)
	ask := func(config *tls.Config) (string, error) {
		c, err := tls.Dial("tcp", addrs[0], config)
		if err != nil {
			return "", err
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		if _, err := io.WriteString(c, "PING\r\n"); err != nil {
			return "", err
		}
		buf := make([]byte, 64)
		n, err := c.Read(buf)
		return string(buf[:n]), err
	}
	known := &tls.Config{RootCAs: roots, ServerName: "localhost", Certificates: []tls.Certificate{pair}}
	if reply, err := ask(known); reply != "+PONG\r\n" {
		t.Errorf("with a certificate: %q, %v", reply, err)
	}
	if reply, err := ask(&tls.Config{RootCAs: roots, ServerName: "localhost"}); err == nil {
		t.Errorf("without a certificate: %q", reply)
	}
	if err := s.Config.Find("tls-auth-clients").Set("no"); err != nil {
		t.Fatal(err)
	}
	if reply, err := ask(&tls.Config{RootCAs: roots, ServerName: "localhost"}); reply != "+PONG\r\n" {
		t.Errorf("without a certificate, where none is asked for: %q, %v", reply, err)
	}
	if err := s.Config.Find("tls-cert-file").Set("/nonexistent"); err == nil || !strings.Contains(err.Error(), "nonexistent") {
		t.Errorf("a certificate that is not there: %v", err)
	}
	if reply, _ := ask(known); reply != "+PONG\r\n" {
		t.Errorf("after a refused change: %q", reply)
	}
}

func TestTLSNeedsItsFiles(t *testing.T) {
	s := onlyTLS(t)
	if _, err := s.Listen(); err == nil || !strings.Contains(err.Error(), "tls-cert-file") {
		t.Errorf("listens without a certificate: %v", err)
	}
}

// A client that does not continue its handshake keeps its place for some seconds only.
func TestTLSHandshakeStandsStill(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	s := onlyTLS(t, params.Setting{Name: "tls-auth-clients", Value: "no"},
		params.Setting{Name: "tls-cert-file", Value: cert}, params.Setting{Name: "tls-key-file", Value: key})
	addrs, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	for _, begin := range []string{"", "\x16\x03\x01\x02\x00\x01"} {
		c, err := net.Dial("tcp", addrs[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, _ = io.WriteString(c, begin)
		_ = c.SetDeadline(time.Now().Add(20 * time.Second)) // four times as long as it may take
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("after %q: %v, want the end of the connection", begin, err)
		}
	}
}
