'use strict'
// The helper for Jest. See hooks.d.ts.
const { afterAll, beforeAll, beforeEach } = require('@jest/globals')
const { hooks } = require('./index.js')

exports.limitkv = hooks({ beforeAll, beforeEach, afterAll })
