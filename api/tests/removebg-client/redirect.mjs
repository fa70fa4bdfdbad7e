// The client has its address built in. Here its calls come to the API under test instead, and nothing else
// gets out.
import http from 'node:http'
import https from 'node:https'

const API = 'api.remove.bg'

export function redirectTo(origin) {
  const { hostname, port } = new URL(origin)
  https.request = (options, answered) => {
    const wanted = options.hostname ?? options.host
    if (wanted !== API) throw new Error(`A call to ${wanted} was not expected`)
    const { agent, agents, ...rest } = options
    return http.request({ ...rest, protocol: 'http:', host: hostname, hostname, port }, answered)
  }
}
