package web

// The page: files that are part of the binary.

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed page
var files embed.FS

// pages serves the files. They change only with the binary.
func pages() http.Handler {
	root, err := fs.Sub(files, "page")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	serve := http.FileServerFS(root)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
