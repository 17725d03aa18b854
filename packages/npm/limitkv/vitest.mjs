// The helper for Vitest. See hooks.d.ts.
import { afterAll, beforeAll, beforeEach } from 'vitest'
import { hooks } from './index.js'

export const limitkv = hooks({ beforeAll, beforeEach, afterAll })
