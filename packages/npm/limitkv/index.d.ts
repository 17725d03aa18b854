/** A word of a command. */
export type Word = string | number | Buffer

/** A reply: text, a number, an array of replies, or null. */
export type Reply = string | number | null | Reply[]

/** The server refused a command. */
export class ReplyError extends Error {}

/** What a server and a namespace both have. */
export interface Keys {
  /** The address, as clients take it: redis://127.0.0.1:12345. */
  readonly url: string
  readonly host: string
  readonly port: number
  readonly password: string | undefined

  /** Sends any command. A refused one throws ReplyError. */
  do(...words: Word[]): Promise<Reply>
  /** Empties all databases. */
  flushAll(): Promise<void>

  /**
   * Stops the clock, where it is or at a time: a Date or Unix milliseconds. TTLs, TIME, limiters, queues, locks and the
   * timeouts of blocking commands go by it. A server has one clock, for all its namespaces.
   */
  freeze(at?: Date | number): Promise<void>
  /**
   * Stops the clock if it runs, and moves it forward by whole milliseconds. All that falls due on the way has happened, in
   * order of time, when the promise is fulfilled.
   */
  advance(ms: number): Promise<void>
  /** Lets the clock run again, with the system's time. */
  resume(): Promise<void>
  /** Makes the server's random choices (SPOP, RANDOMKEY, math.random in scripts) repeatable. */
  seed(seed: number | bigint): Promise<void>

  /** Keeps all keys of all databases, and the functions. */
  snapshot(): Promise<Snapshot>

  /**
   * Has the next commands that match reply an error, whose text begins with its code ("LOADING …"). A pattern is a name with
   * * and ? ("get", "z*", "config|set"), or, with a blank in it, a whole line ("GET user:*").
   */
  failNext(pattern: string, count: number, text: string): Promise<void>
  /** Has the next commands that match run later, by the server's clock. */
  delayNext(pattern: string, count: number, ms: number): Promise<void>
  /** Has the next commands that match end their connection instead of running. */
  disconnectNext(pattern: string, count: number): Promise<void>
  /** Takes back the faults that have not happened yet. */
  clearFaults(): Promise<void>

  /** Begins to keep the commands that clients send, and forgets what was kept before. */
  record(): Promise<void>
  /** The commands that were received since record() and match, the oldest first. */
  received(pattern?: string): Promise<string[][]>

  /** What is to a test as a server of its own, and costs less. */
  namespace(): Promise<Namespace>
}

/** A running server. It ends with this process at the latest, however that ends. */
export interface Server extends Keys {
  /** The server's process id. */
  readonly pid: number
  /** The last lines that the server printed. */
  readonly log: string
  /** Stops the server. */
  stop(): Promise<void>
}

/**
 * A namespace has databases, channels, functions, faults and snapshots that nobody else sees. The clock, the random numbers,
 * the settings and the users are the server's, for all.
 */
export interface Namespace extends Keys {
  readonly name: string
  /** Removes it with everything in it, and closes its connections. */
  drop(): Promise<void>
}

/** All keys as they were. */
export interface Snapshot {
  readonly name: string
  /**
   * Brings them back, as often as it is called. A server's clock that stood is put back, since deadlines are times; a
   * namespace's is not its alone.
   */
  restore(): Promise<void>
  /** Forgets it. */
  drop(): Promise<void>
}

/** Starts a server on a free port of 127.0.0.1, with the commands of --test. Flags are those of the command line. */
export function start(...flags: (string | number)[]): Promise<Server>

/** The path of the server's binary. */
export function program(): string
