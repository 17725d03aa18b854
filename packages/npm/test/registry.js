// A registry that has the packages of a folder, and prints its address: npm finds by it which of them fits the machine.
const { createHash } = require('node:crypto')
const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const http = require('node:http')
const path = require('node:path')

const tarballs = new Map() // by path
const packages = new Map() // by name
const dir = process.argv[2]
for (const name of fs.readdirSync(dir)) {
  const file = path.join(dir, name)
  const manifest = JSON.parse(execFileSync('tar', ['-xzOf', file, 'package/package.json']))
  tarballs.set(manifest.name === 'limitkv' ? '/limitkv.tgz' : `/${name}`, file)
  packages.set(`/${manifest.name}`, (url) => {
    const integrity = `sha512-${createHash('sha512').update(fs.readFileSync(file)).digest('base64')}`
    const version = { ...manifest, dist: { tarball: `${url}/${name}`, integrity } }
    return { name: manifest.name, 'dist-tags': { latest: manifest.version }, versions: { [manifest.version]: version } }
  })
}

const server = http.createServer((request, response) => {
  const asked = decodeURIComponent(request.url)
  if (tarballs.has(asked)) return fs.createReadStream(tarballs.get(asked)).pipe(response)
  if (packages.has(asked)) return response.end(JSON.stringify(packages.get(asked)(`http://${request.headers.host}`)))
  response.statusCode = 404
  response.end('{"error":"not found"}')
})
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`))
