/** A limiter that a request takes from. */
export interface Limit {
  key: string
  /** As RL.ACQUIRE has it: 'GCRA 100 60000 BURST 20', 'LOG 100 60000', 'CAL 10000 MONTH TZ Europe/Berlin'. */
  rule: string
  /** Its name in the headers, 'default' unless given. */
  policy?: string
  /** 1 unless given. */
  cost?: number
}

type Limits = Limit | Limit[] | undefined | null

export interface Options<Request> {
  /** A client of redis or ioredis. */
  client: { sendCommand(args: any, ...rest: any[]): Promise<any> } | { call(...args: any[]): Promise<any> }
  limits: (request: Request) => Limits | Promise<Limits>
  failureMode?: 'open' | 'closed'
  /** In milliseconds, 100 unless given. */
  timeout?: number
  onError?: (error: Error) => void
}
