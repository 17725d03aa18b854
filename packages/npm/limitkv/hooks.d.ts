import type { Server } from './index.js'

/**
 * Starts a server before the first test of this file (or of this describe block) and stops it after the last. Each test
 * begins with no keys, no faults and a clock that runs. Flags are those of the command line.
 *
 * The server is there from beforeAll on: read its url in a hook or in a test.
 */
export function limitkv(...flags: (string | number)[]): Server
