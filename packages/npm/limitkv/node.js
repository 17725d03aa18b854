'use strict'
// The helper for Node's own test runner. See hooks.d.ts.
const { after, before, beforeEach } = require('node:test')
const { hooks } = require('./index.js')

exports.limitkv = hooks({ beforeAll: before, beforeEach, afterAll: after })
