// The far end for Node's clients: calls the method that a line names, and answers with what it returns or throws.
import { createInterface } from 'node:readline'

export async function serve (driver) {
  for await (const line of createInterface({ input: process.stdin })) {
    const { do: verb, ...args } = JSON.parse(line)
    let answer
    try {
      answer = { ok: (await driver[verb](args)) ?? null }
    } catch (error) {
      console.error(error)
      answer = { error: `${error.name}: ${error.message} ${(error.errors ?? []).map(e => e.message).join('; ')}` }
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
  }
  await Promise.race([driver.close(), new Promise(resolve => setTimeout(resolve, 3000))])
  process.exit(0)
}

// Messages that arrived and were not taken yet; `take` waits for `count` of them or until the time is up.
export class Inbox {
  constructor () {
    this.messages = []
    this.wake = () => {}
  }

  put (message) {
    this.messages.push(message)
    this.wake()
  }

  async take (count, seconds) {
    const until = Date.now() + seconds * 1000
    while (this.messages.length < count && Date.now() < until) {
      await new Promise(resolve => {
        const timer = setTimeout(resolve, until - Date.now())
        this.wake = () => { clearTimeout(timer); resolve() }
      })
    }
    return this.messages.splice(0, count)
  }
}
