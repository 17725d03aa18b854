// Uses every declaration once; the compiler says whether they fit together.
import { createClient } from 'redis'
import { Namespace, program, Reply, ReplyError, Server, Snapshot, start } from 'limitkv'
import { limitkv as inVitest } from 'limitkv/vitest'
import { limitkv as inJest } from 'limitkv/jest'
import { limitkv as inNode } from 'limitkv/node'
import express from '@limitkv/middleware/express'
import fastify from '@limitkv/middleware/fastify'

const servers: Server[] = [inVitest(), inJest('--databases', 3), inNode(), await start('--requirepass', 'x')]
for (const server of servers) {
  createClient({ url: server.url })
  const { host, port, password, pid, log }: { host: string, port: number, password: string | undefined, pid: number, log: string } = server
  console.log(host, port, password, pid, log, program())
  await server.freeze()
  await server.freeze(new Date())
  await server.freeze(1_700_000_000_000)
  await server.advance(1)
  await server.resume()
  await server.seed(7n)
  const snapshot: Snapshot = await server.snapshot()
  await snapshot.restore()
  await snapshot.drop()
  await server.failNext('get', 1, 'ERR no')
  await server.delayNext('get', 1, 100)
  await server.disconnectNext('get', 1)
  await server.clearFaults()
  await server.record()
  const received: string[][] = await server.received('get')
  const namespace: Namespace = await server.namespace()
  console.log(received, namespace.name)
  await namespace.drop()
  const reply: Reply = await server.do('SET', 'k', 1, Buffer.from('x')).catch((err: ReplyError) => err.message)
  console.log(reply)
  await server.flushAll()
  // @ts-expect-error: a time is no text
  await server.freeze('now')
  await server.stop()
}

const client = createClient()
express({ client, limits: (req: { ip: string }) => ({ key: req.ip, rule: 'LOG 2 60000' }), refused: (_req, res) => res.end() })
await fastify({}, { client, limits: () => [], failureMode: 'closed', hook: 'preHandler' })
// @ts-expect-error: a limiter has a key
express({ client, limits: () => ({ rule: 'LOG 2 60000' }) })
