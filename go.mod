module github.com/limitkv/limitkv

go 1.26.8

require (
	github.com/anishathalye/porcupine v1.0.3
	github.com/redis/go-redis/v9 v9.17.2
	github.com/tidwall/btree v1.8.1
	github.com/tidwall/redcon v1.6.2
	github.com/yuin/gopher-lua v1.1.2
	golang.org/x/sys v0.38.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/dgryski/go-rendezvous v0.0.0-20200823014737-9f7001d12a5f // indirect
	github.com/tidwall/match v1.1.1 // indirect
)
