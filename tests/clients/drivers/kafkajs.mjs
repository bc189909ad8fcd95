// KafkaJS does what it is told.
import { createRequire } from 'node:module'
import { Inbox, serve } from './jsonlines.mjs'

const { ConfigResourceTypes, Kafka, CompressionTypes, logLevel } = createRequire(process.env.NODE_PATH + '/')('kafkajs')

class Driver {
  constructor (bootstrap) {
    const log = ({ level, log }) => console.error(level, JSON.stringify(log))
    this.kafka = new Kafka({ brokers: bootstrap.split(','), logLevel: logLevel.WARN, logCreator: () => log, retry: { initialRetryTime: 100, retries: 12 } })
    this.admin = this.kafka.admin()
    this.transactional = new Map()
    this.transactions = new Map()
  }

  async connected (client) {
    if (!client.isThere) await client.connect()
    client.isThere = true
    return client
  }

  async produce ({ topic, messages, compression }) {
    this.producer ??= this.kafka.producer({ allowAutoTopicCreation: false })
    await this.connected(this.producer)
    await this.producer.send({ topic, messages, acks: -1, compression: compression ? CompressionTypes.GZIP : CompressionTypes.None })
  }

  async begin ({ producer, transactional_id: transactionalId }) {
    if (!this.transactional.has(producer)) {
      this.transactional.set(producer, this.kafka.producer({ transactionalId, idempotent: true, maxInFlightRequests: 1 }))
    }
    this.transactions.set(producer, await (await this.connected(this.transactional.get(producer))).transaction())
  }

  async write ({ producer, topic, messages }) {
    await this.transactions.get(producer).send({ topic, messages, acks: -1 })
  }

  async send_offsets ({ producer, group }) {
    const topics = new Map()
    for (const { topic, partition, offset } of this.taken.values()) {
      topics.set(topic, [...(topics.get(topic) ?? []), { partition, offset }])
    }
    const listed = [...topics].map(([topic, partitions]) => ({ topic, partitions }))
    await this.transactions.get(producer).sendOffsets({ consumerGroupId: group, topics: listed })
  }

  async end ({ producer, commits }) {
    const transaction = this.transactions.get(producer)
    await (commits ? transaction.commit() : transaction.abort())
  }

  async subscribe ({ topic, group, isolation }) {
    this.inbox = new Inbox()
    this.taken = new Map()
    this.consumer = this.kafka.consumer({
      groupId: group, sessionTimeout: 10000, heartbeatInterval: 500, maxWaitTimeInMs: 500, readUncommitted: isolation === 'read_uncommitted'
    })
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [topic], fromBeginning: true })
    await this.consumer.run({
      autoCommit: false,
      eachMessage: async ({ topic, partition, message }) => this.inbox.put({
        topic,
        key: message.key.toString(),
        value: message.value.toString(),
        headers: Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, value.toString()])),
        partition,
        offset: Number(message.offset)
      })
    })
  }

  async take ({ count, seconds }) {
    const taken = await this.inbox.take(count, seconds)
    for (const { topic, partition, offset } of taken) this.taken.set(partition, { topic, partition, offset: String(offset + 1) })
    return taken.map(({ topic, ...rest }) => rest)
  }

  async commit () {
    await this.consumer.commitOffsets([...this.taken.values()])
  }

  async unsubscribe () {
    await this.consumer.disconnect()
  }

  async create_topic ({ topic, partitions }) {
    await (await this.connected(this.admin)).createTopics({ topics: [{ topic, numPartitions: partitions }], waitForLeaders: true })
  }

  async delete_topic ({ topic }) {
    await (await this.connected(this.admin)).deleteTopics({ topics: [topic] })
  }

  async configure ({ topic, settings }) {
    const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }))
    const resources = [{ type: ConfigResourceTypes.TOPIC, name: topic, configEntries }]
    await (await this.connected(this.admin)).alterConfigs({ validateOnly: false, resources })
  }

  async topics () {
    return (await this.connected(this.admin)).listTopics()
  }

  async partitions ({ topic }) {
    return (await (await this.connected(this.admin)).fetchTopicMetadata({ topics: [topic] })).topics[0].partitions.length
  }

  async groups () {
    return (await (await this.connected(this.admin)).listGroups()).groups.map(group => group.groupId)
  }

  async members ({ group }) {
    return (await (await this.connected(this.admin)).describeGroups([group])).groups[0].members.length
  }

  async committed ({ group, topic }) {
    const [found] = await (await this.connected(this.admin)).fetchOffsets({ groupId: group, topics: [topic] })
    return found.partitions.reduce((sum, { offset }) => sum + Math.max(0, Number(offset)), 0)
  }

  async end_offsets ({ topic }) {
    const found = await (await this.connected(this.admin)).fetchTopicOffsets(topic)
    return found.reduce((sum, { high }) => sum + Number(high), 0)
  }

  async close () {
    for (const client of [this.producer, this.admin, ...this.transactional.values()]) if (client?.isThere) await client.disconnect()
  }
}

await serve(new Driver(process.argv[2]))
