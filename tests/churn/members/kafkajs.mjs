// A member that is KafkaJS: with its own assigner, or with one that other clients know as `range`.
import { openSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'

const { Kafka, AssignerProtocol, PartitionAssigners, logLevel } = createRequire(process.env.NODE_PATH + '/')('kafkajs')

const asked = JSON.parse(process.argv[2])
const notes = openSync(asked.notes, 'a')
const note = (what, names) => writeSync(notes, JSON.stringify([Date.now(), what, names]) + '\n')

// Each member gets a row of neighbouring partitions, the first ones one more where it does not come out even.
const range = ({ cluster }) => ({
  name: 'range',
  version: 0,
  async assign ({ members, topics }) {
    const ids = members.map(({ memberId }) => memberId).sort()
    const given = Object.fromEntries(ids.map(id => [id, {}]))
    for (const topic of topics) {
      const partitions = cluster.findTopicPartitionMetadata(topic).map(({ partitionId }) => partitionId).sort((a, b) => a - b)
      const each = Math.floor(partitions.length / ids.length)
      const more = partitions.length % ids.length
      ids.forEach((id, at) => { given[id][topic] = partitions.splice(0, each + (at < more ? 1 : 0)) })
    }
    return ids.map(memberId => ({
      memberId,
      memberAssignment: AssignerProtocol.MemberAssignment.encode({ version: 0, assignment: given[memberId] })
    }))
  },
  protocol ({ topics }) {
    return { name: 'range', metadata: AssignerProtocol.MemberMetadata.encode({ version: 0, topics }) }
  }
})

const log = ({ level, log }) => console.error(level, JSON.stringify(log))
const kafka = new Kafka({
  brokers: [asked.bootstrap],
  clientId: asked.client,
  logLevel: logLevel.WARN,
  logCreator: () => log,
  retry: { initialRetryTime: 100, retries: 12 }
})
const consumer = kafka.consumer({
  groupId: asked.group,
  sessionTimeout: asked.session_ms,
  heartbeatInterval: asked.heartbeat_ms,
  maxWaitTimeInMs: 100,
  partitionAssigners: [asked.strategy === 'range' ? range : PartitionAssigners.roundRobin]
})
consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => note('assigned', payload.memberAssignment[asked.topic] ?? []))
consumer.on(consumer.events.REBALANCING, () => note('rebalancing', []))

let before = Date.now()
setInterval(() => {
  const late = Date.now() - before - 100
  if (late > 200) note('late', [late])
  before = Date.now()
}, 100)
process.stdin.resume()
process.stdin.on('close', async () => {
  note('leaves', [])
  await consumer.disconnect()
  note('left', [])
  process.exit(0)
})
await consumer.connect()
await consumer.subscribe({ topics: [asked.topic], fromBeginning: true })
await consumer.run({
  autoCommitInterval: 500,
  eachMessage: async ({ partition, message }) => note('took', [[partition, Number(message.offset)]])
})
