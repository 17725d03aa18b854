import type { Options } from './limiter'

declare function limitkv<Request = any>(
  fastify: any,
  options: Options<Request> & { hook?: 'onRequest' | 'preParsing' | 'preValidation' | 'preHandler' },
): Promise<void>
export = limitkv
