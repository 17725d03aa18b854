#!/usr/bin/env node
'use strict'
// Runs the server: `npx limitkv`, with its own flags. Signals that end this process end the server.

const { spawn } = require('node:child_process')
const { program } = require('./index.js')

const child = spawn(program(), process.argv.slice(2), { stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
child.on('error', (err) => {
  console.error(`limitkv: ${err.message}`)
  process.exit(1)
})
child.on('exit', (code, signal) => process.exit(signal ? 1 : code))
