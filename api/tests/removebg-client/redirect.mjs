// Redirects the client, whose address is built in, to the API under test, and rejects any other request.
import http from 'node:http'
import https from 'node:https'

const API = 'api.remove.bg'

export function redirectTo(origin) {
  const { hostname, port } = new URL(origin)
  https.request = (options, answered) => {
    const host = options.hostname ?? options.host
    if (host !== API) throw new Error(`Unexpected request to ${host}`)
    const { agent, agents, ...rest } = options
    return http.request({ ...rest, protocol: 'http:', host: hostname, hostname, port }, answered)
  }
}
