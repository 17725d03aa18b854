package server

// TLS: redis.conf's tls-* parameters as a crypto/tls configuration. It can change while the server runs; new connections use
// the new one.

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/limitkv/limitkv/server/params"
)

// tlsParams are the parameters with their defaults.
var tlsParams = [][3]string{
	{"tls-cert-file", "", "the server's certificate, PEM"},
	{"tls-key-file", "", "the certificate's private key, PEM"},
	{"tls-key-file-pass", "", "pass phrase of the private key"},
	{"tls-ca-cert-file", "", "certificates that client certificates are checked against, PEM"},
	{"tls-ca-cert-dir", "", "a folder of such certificates"},
	{"tls-auth-clients", "yes", "whether clients need a certificate: yes, no or optional"},
	{"tls-protocols", "", "TLSv1.2 and TLSv1.3, or one of them"},
	{"tls-ciphers", "", "cipher suites of TLS 1.2 by their OpenSSL or IANA names, parted by colons"},
}

// tlsSettings makes configurations of the parameters.
type tlsSettings struct {
	mu     sync.Mutex
	values map[string]string
	// now is nil until the server listens with TLS.
	now atomic.Pointer[tls.Config]
}

func declareTLS(c *params.Config) *tlsSettings {
	t := &tlsSettings{values: make(map[string]string)}
	for _, p := range tlsParams {
		name := p[0]
		t.values[name] = p[1]
		c.Add(&params.Param{Name: name, Help: p[2], Secret: name == "tls-key-file-pass",
			Get: func() string { t.mu.Lock(); defer t.mu.Unlock(); return t.values[name] },
			Set: func(v string) error { return t.set(name, v) }})
	}
	return t
}

// set changes a parameter. Once the server listens with TLS, it refuses values that make no working configuration.
func (t *tlsSettings) set(name, value string) error {
	if name == "tls-auth-clients" {
		words := []string{"no", "yes", "optional"}
		if value = strings.ToLower(value); !slices.Contains(words, value) {
			return params.ErrNotAmong(words)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.values[name]
	t.values[name] = value
	if t.now.Load() == nil {
		return nil
	}
	config, err := t.build()
	if err != nil {
		t.values[name] = old
		return fmt.Errorf("Unable to update TLS configuration: %v", err)
	}
	t.now.Store(config)
	return nil
}

// start makes the first configuration and returns one for the listener, which
// asks for the newest at each connection.
func (t *tlsSettings) start() (*tls.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	config, err := t.build()
	if err != nil {
		return nil, err
	}
	t.now.Store(config)
	return &tls.Config{
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.now.Load(), nil },
	}, nil
}

// build makes a configuration of the values. The lock is held.
func (t *tlsSettings) build() (*tls.Config, error) {
	v := t.values
	if v["tls-cert-file"] == "" {
		return nil, errors.New("no tls-cert-file configured")
	}
	if v["tls-key-file"] == "" {
		return nil, errors.New("no tls-key-file configured")
	}
	cert, err := keyPair(v["tls-cert-file"], v["tls-key-file"], v["tls-key-file-pass"])
	if err != nil {
		return nil, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if config.ClientCAs, err = authorities(v["tls-ca-cert-file"], v["tls-ca-cert-dir"]); err != nil {
		return nil, err
	}
	switch v["tls-auth-clients"] {
	case "yes":
		config.ClientAuth = tls.RequireAndVerifyClientCert
	case "optional":
		config.ClientAuth = tls.VerifyClientCertIfGiven
	}
	if config.ClientAuth != tls.NoClientCert && config.ClientCAs == nil {
		return nil, errors.New("tls-auth-clients needs tls-ca-cert-file or tls-ca-cert-dir")
	}
	if err := protocols(config, v["tls-protocols"]); err != nil {
		return nil, err
	}
	config.CipherSuites, err = ciphers(v["tls-ciphers"])
	return config, err
}

// client makes a configuration for a connection to another server (tls-replication). As in Redis it checks the server's
// certificate, but not its name.
func (t *tlsSettings) client(value func(name string) string) (*tls.Config, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.values
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	certFile, keyFile, pass := value("tls-client-cert-file"), value("tls-client-key-file"), value("tls-client-key-file-pass")
	if certFile == "" {
		certFile, keyFile, pass = v["tls-cert-file"], v["tls-key-file"], v["tls-key-file-pass"]
	}
	if certFile != "" {
		cert, err := keyPair(certFile, keyFile, pass)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{cert}
	}
	roots, err := authorities(v["tls-ca-cert-file"], v["tls-ca-cert-dir"])
	if err != nil {
		return nil, err
	}
	config.InsecureSkipVerify = true // of the name: VerifyConnection checks the rest
	config.VerifyConnection = func(state tls.ConnectionState) error {
		between := x509.NewCertPool()
		for _, cert := range state.PeerCertificates[1:] {
			between.AddCert(cert)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
	if err := protocols(config, v["tls-protocols"]); err != nil {
		return nil, err
	}
	config.CipherSuites, err = ciphers(v["tls-ciphers"])
	return config, err
}

// keyPair reads a certificate and its key, which may be encrypted in the old
// PEM form.
func keyPair(certFile, keyFile, pass string) (tls.Certificate, error) {
	certPEM, err := os.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	keyPEM, err := os.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	//lint:ignore SA1019 keys that OpenSSL encrypted so are in use
	if block, _ := pem.Decode(keyPEM); block != nil && x509.IsEncryptedPEMBlock(block) {
		//lint:ignore SA1019 as above
		der, err := x509.DecryptPEMBlock(block, []byte(pass))
		if err != nil {
			return tls.Certificate{}, fmt.Errorf("%s: %v", keyFile, err)
		}
		keyPEM = pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der})
	}
	return tls.X509KeyPair(certPEM, keyPEM)
}

// authorities reads the certificates that clients' are checked against, nil
// if none are configured.
func authorities(file, dir string) (*x509.CertPool, error) {
	var files []string
	if file != "" {
		files = append(files, file)
	}
	if dir != "" {
		inDir, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			return nil, err
		}
		files = append(files, inDir...)
	}
	if len(files) == 0 {
		return nil, nil
	}
	pool := x509.NewCertPool()
	found := false
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			if f == file {
				return nil, err
			}
			continue // a folder may hold other things
		}
		found = pool.AppendCertsFromPEM(b) || found
	}
	if !found {
		return nil, errors.New("no certificate in tls-ca-cert-file or tls-ca-cert-dir")
	}
	return pool, nil
}

// protocols sets the versions of TLS. Versions before 1.2 are not offered, as in current OpenSSL.
func protocols(config *tls.Config, names string) error {
	if names == "" {
		return nil
	}
	known := map[string]uint16{"tlsv1.2": tls.VersionTLS12, "tlsv1.3": tls.VersionTLS13}
	config.MinVersion, config.MaxVersion = 0, 0
	for _, name := range strings.Fields(strings.ToLower(names)) {
		v, ok := known[name]
		if !ok {
			if name == "tlsv1" || name == "tlsv1.1" {
				continue
			}
			return fmt.Errorf("unknown protocol %q in tls-protocols", name)
		}
		if config.MinVersion == 0 || v < config.MinVersion {
			config.MinVersion = v
		}
		config.MaxVersion = max(config.MaxVersion, v)
	}
	if config.MinVersion == 0 {
		return errors.New("tls-protocols names no protocol that is supported (TLSv1.2, TLSv1.3)")
	}
	return nil
}

// ciphers finds cipher suites by name. OpenSSL writes
// ECDHE-RSA-AES128-GCM-SHA256 where IANA writes
// TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; they are compared without what
// differs. Words that are no suite (DEFAULT:!MEDIUM) are passed over.
func ciphers(names string) (ids []uint16, err error) {
	if names == "" {
		return nil, nil
	}
	plain := func(s string) string {
		return strings.NewReplacer("TLS_", "", "WITH_", "", "_", "", "-", "").Replace(strings.ToUpper(s))
	}
	for _, name := range strings.Split(names, ":") {
		for _, suite := range tls.CipherSuites() {
			if plain(suite.Name) == plain(name) {
				ids = append(ids, suite.ID)
			}
		}
	}
	return ids, nil
}
