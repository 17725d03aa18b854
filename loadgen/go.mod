module github.com/limitkv/limitkv/loadgen

go 1.26.8

replace github.com/limitkv/limitkv => ../

require (
	github.com/HdrHistogram/hdrhistogram-go v1.1.2
	github.com/limitkv/limitkv v0.0.0
	golang.org/x/sys v0.38.0
)

require (
	github.com/tidwall/btree v1.8.1 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/redcon v1.6.2 // indirect
	github.com/yuin/gopher-lua v1.1.2 // indirect
)
