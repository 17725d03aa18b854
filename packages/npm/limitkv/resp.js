'use strict'
// A client of one connection, with as much of the protocol as the helpers need, so that they need no client library.

const net = require('node:net')

/** The server refused a command. */
class ReplyError extends Error {
  constructor(text) {
    super(text)
    this.name = 'ReplyError'
  }
}

class Connection {
  #socket
  #data = Buffer.alloc(0)
  #waiting = []

  static async open(host, port, password) {
    const connection = new Connection()
    await new Promise((resolve, reject) => {
      const socket = net.connect({ host, port, noDelay: true }, resolve)
      socket.once('error', reject)
      socket.on('data', (data) => connection.#take(data))
      socket.on('error', (err) => connection.#end(err))
      socket.on('close', () => connection.#end(new Error('limitkv closed the connection')))
      connection.#socket = socket
    })
    connection.#socket.unref() // only a reply that is awaited keeps the process alive
    if (password !== undefined) await connection.do(['AUTH', password])
    return connection
  }

  /** Sends a command. Its reply is a string, a number, an array or null. */
  do(words) {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed) return reject(new Error('limitkv closed the connection'))
      this.#waiting.push({ resolve, reject })
      this.#socket.ref()
      const parts = [`*${words.length}\r\n`]
      for (const word of words) {
        const bytes = Buffer.isBuffer(word) ? word : Buffer.from(String(word))
        parts.push(`$${bytes.length}\r\n`, bytes, '\r\n')
      }
      this.#socket.write(Buffer.concat(parts.map((p) => Buffer.from(p))))
    })
  }

  #take(data) {
    this.#data = Buffer.concat([this.#data, data])
    for (;;) {
      let found
      try {
        found = parse(this.#data, 0)
      } catch (err) {
        return this.#socket.destroy(err) // a reply of RESP3, for one
      }
      if (!found) return
      this.#data = this.#data.subarray(found.end)
      const { resolve, reject } = this.#waiting.shift()
      if (this.#waiting.length === 0) this.#socket.unref()
      if (found.value instanceof ReplyError) reject(found.value)
      else resolve(found.value)
    }
  }

  #end(err) {
    for (const { reject } of this.#waiting.splice(0)) reject(err)
  }

  close() {
    this.#socket.destroy()
  }
}

// parse returns the reply that begins at a place and where it ends, or undefined if it is not all there.
function parse(data, from) {
  const eol = data.indexOf('\r\n', from)
  if (eol < 0) return undefined
  const kind = String.fromCharCode(data[from])
  const text = data.toString('utf8', from + 1, eol)
  let end = eol + 2
  switch (kind) {
    case '+':
      return { value: text, end }
    case '-':
      return { value: new ReplyError(text), end }
    case ':':
      return { value: Number(text), end }
    case '$': {
      const n = Number(text)
      if (n < 0) return { value: null, end }
      if (data.length < end + n + 2) return undefined
      return { value: data.toString('utf8', end, end + n), end: end + n + 2 }
    }
    case '*': {
      const n = Number(text)
      if (n < 0) return { value: null, end }
      const value = []
      for (let i = 0; i < n; i++) {
        const found = parse(data, end)
        if (!found) return undefined
        value.push(found.value)
        end = found.end
      }
      return { value, end }
    }
  }
  throw new Error(`limitkv sent ${kind}${text}`)
}

module.exports = { Connection, ReplyError }
