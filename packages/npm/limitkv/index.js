'use strict'
// Servers for tests: a process each, which ends with the process that started it, however that ends.

const { spawn } = require('node:child_process')
const { clearTimeout, setTimeout } = require('node:timers') // not those that a test replaces
const { Connection, ReplyError } = require('./resp.js')

let number = 0 // of snapshots and namespaces; those of other processes and threads have another start
const start0 = `${process.pid}-${Math.random().toString(36).slice(2, 10)}`
const uniqueName = () => `node-${start0}-${++number}`

/** The path of the server's binary. */
function program() {
  const name = `@limitkv/${process.platform}-${process.arch}`
  try {
    return require.resolve(`${name}/limitkv${process.platform === 'win32' ? '.exe' : ''}`)
  } catch {
    throw new Error(`limitkv: ${name} is not installed: there is no such package, or optional dependencies were left out`)
  }
}

// What a server and a namespace both have: an address, and methods that drive what is behind it.
class Keys {
  constructor(host, port, password, connection) {
    this.host = host
    this.port = port
    this.password = password
    this.connection = connection
    Object.defineProperty(this, 'connection', { enumerable: false })
  }

  get url() {
    const user = this.password === undefined ? '' : `:${encodeURIComponent(this.password)}@`
    return `redis://${user}${this.host.includes(':') ? `[${this.host}]` : this.host}:${this.port}`
  }

  do(...words) {
    return this.connection.do(words)
  }

  async flushAll() {
    await this.do('FLUSHALL')
  }

  async freeze(at) {
    await this.do('LKV.CLOCK', 'FREEZE', ...(at === undefined ? [] : [Number(at)]))
    this._process().frozen = true
  }

  async advance(ms) {
    await this.do('LKV.CLOCK', 'ADVANCE', ms)
    this._process().frozen = true
  }

  async resume() {
    await this.do('LKV.CLOCK', 'RESUME')
    this._process().frozen = false
  }

  async seed(seed) {
    await this.do('LKV.SEED', seed)
  }

  async snapshot() {
    const name = uniqueName()
    const at = this.frozen ? await this.do('LKV.CLOCK', 'NOW') : undefined
    await this.do('LKV.SNAPSHOT', 'SAVE', name)
    return new Snapshot(this, name, at)
  }

  async failNext(pattern, count, text) {
    await this.do('LKV.FAULT', 'ADD', pattern, count, 'ERROR', text)
  }

  async delayNext(pattern, count, ms) {
    await this.do('LKV.FAULT', 'ADD', pattern, count, 'DELAY', ms)
  }

  async disconnectNext(pattern, count) {
    await this.do('LKV.FAULT', 'ADD', pattern, count, 'DISCONNECT')
  }

  async clearFaults() {
    await this.do('LKV.FAULT', 'CLEAR')
  }

  async record() {
    await this.do('LKV.LOG', 'ON')
    await this.do('LKV.LOG', 'RESET')
  }

  async received(pattern = '*') {
    return (await this.do('LKV.LOG', 'GET', 'MATCH', pattern)).map((entry) => entry[3])
  }

  async namespace() {
    const server = this._process()
    const name = uniqueName()
    const port = await server.do('LKV.NAMESPACE', 'PORT', name)
    return new Namespace(server, name, port, await Connection.open(server.host, port, server.password))
  }
}

class Server extends Keys {
  frozen = false // the clock stands
  #child
  #ended

  constructor(host, port, password, connection, child, ended, log) {
    super(host, port, password, connection)
    this.#child = child
    this.#ended = ended
    Object.defineProperty(this, 'log', { get: () => log.join('') })
  }

  get pid() {
    return this.#child.pid
  }

  _process() {
    return this
  }

  async stop() {
    this.connection.close()
    this.#child.stdin.end()
    const late = setTimeout(() => this.#child.kill('SIGKILL'), 10_000)
    await this.#ended
    clearTimeout(late)
  }

  [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    return this.stop()
  }
}

class Namespace extends Keys {
  #server

  constructor(server, name, port, connection) {
    super(server.host, port, server.password, connection)
    this.#server = server
    this.name = name
  }

  _process() {
    return this.#server
  }

  async drop() {
    this.connection.close()
    await this.#server.do('LKV.NAMESPACE', 'DROP', this.name)
  }

  [Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]() {
    return this.drop()
  }
}

class Snapshot {
  #keys
  #at

  constructor(keys, name, at) {
    this.#keys = keys
    this.name = name
    this.#at = at
  }

  async restore() {
    if (this.#at !== undefined) await this.#keys.freeze(this.#at)
    await this.#keys.do('LKV.SNAPSHOT', 'RESTORE', this.name)
  }

  async drop() {
    await this.#keys.do('LKV.SNAPSHOT', 'DROP', this.name)
  }
}

/** Starts a server. */
async function start(...flags) {
  // Standard input is never written to: its end is how the server learns that this process is gone.
  const args = ['--test', '--until-eof', '--port', '0', '--loglevel', 'warning', ...flags.map(String)]
  const child = spawn(program(), args, { stdio: ['pipe', 'pipe', 'pipe'] })
  const log = [] // the last lines that the server printed
  let printed = ''
  const ended = new Promise((resolve) => child.once('close', resolve))
  const [host, port] = await new Promise((resolve, reject) => {
    const take = (data) => {
      const lines = (printed + data).split(/(?<=\n)/)
      printed = lines.at(-1).endsWith('\n') ? '' : lines.pop()
      for (const line of lines) {
        log.push(line)
        const found = / listens on (\S+):(\d+) /.exec(line)
        if (found) resolve([found[1].replace(/[[\]]/g, ''), Number(found[2])])
      }
      log.splice(0, log.length - 1000)
    }
    child.stdout.setEncoding('utf8').on('data', take)
    child.stderr.setEncoding('utf8').on('data', take)
    child.stdin.on('error', () => {}) // the server has ended
    child.once('error', reject)
    ended.then(() => reject(new Error(`limitkv did not start: ${log.join('')}${printed}`)))
  })
  // A server that is not stopped keeps no process alive.
  child.unref()
  for (const stream of child.stdio) stream.unref()
  const password = flagValue(flags, '--requirepass')
  const connection = await Connection.open(host, port, password).catch((err) => {
    child.kill('SIGKILL')
    throw err
  })
  return new Server(host, port, password, connection, child, ended, log)
}

// flagValue is the value of a flag, the last one if it is given twice.
function flagValue(flags, name) {
  let value
  flags.forEach((flag, i) => {
    if (flag === name && i + 1 < flags.length) value = String(flags[i + 1])
    else if (String(flag).startsWith(`${name}=`)) value = String(flag).slice(name.length + 1)
  })
  return value
}

/** What the helpers of the test frameworks share: see hooks.d.ts. */
function hooks({ beforeAll, beforeEach, afterAll }) {
  return function limitkv(...flags) {
    let server
    const started = () => {
      if (!server) throw new Error('limitkv: the server starts before the first test, in beforeAll')
      return server
    }
    beforeAll(async () => {
      server = await start(...flags)
    })
    beforeEach(async () => {
      await server.resume()
      await server.clearFaults()
      await server.flushAll()
    })
    afterAll(async () => {
      if (server) await retire(server)
    })
    // The server is not there yet; who asks for something of it finds it.
    return new Proxy({}, {
      get(_, property) {
        const value = Reflect.get(started(), property, started())
        return typeof value === 'function' ? value.bind(started()) : value
      },
      has: (_, property) => Reflect.has(started(), property),
    })
  }
}

// retire stops a server when its clients are gone: Jest and Node call hooks of this kind in the order of their definition, so
// the test's own, which close them, come later. It does not wait for them, for then they would never be called.
async function retire(server, until = Date.now() + 5000) {
  const others = await server.clearFaults().then(() => server.do('INFO', 'clients')).catch(() => '')
  if (/connected_clients:([2-9]|\d\d)/.test(others) && Date.now() < until) {
    setTimeout(retire, 20, server, until).unref()
  } else {
    await server.stop()
  }
}

module.exports = { start, program, hooks, Server, Namespace, Snapshot, ReplyError }
