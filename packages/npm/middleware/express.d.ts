import type { Options } from './limiter'

declare function limit<Request = any, Response = any>(
  options: Options<Request> & { refused?: (req: Request, res: Response) => unknown },
): (req: Request, res: Response, next: (error?: any) => void) => Promise<unknown>
export = limit
