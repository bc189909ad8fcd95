// @platformatic/kafka does what it is told.
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'
import { Inbox, serve } from './jsonlines.mjs'

const found = createRequire(process.env.NODE_PATH + '/').resolve('@platformatic/kafka')
const { Admin, ConfigResourceTypes, Consumer, Producer, stringDeserializers, stringSerializers, FetchIsolationLevels, ListOffsetTimestamps } = await import(pathToFileURL(found))

class Driver {
  constructor (bootstrap) {
    this.options = { clientId: 'driver', bootstrapBrokers: bootstrap.split(','), retries: 10, retryDelay: 200 }
    this.admin = new Admin(this.options)
    this.transactional = new Map()
    this.transactions = new Map()
  }

  async produce ({ topic, messages, compression }) {
    this.producer ??= new Producer({ ...this.options, serializers: stringSerializers })
    await this.producer.send({
      messages: messages.map(message => ({ topic, ...message })),
      acks: -1,
      compression: compression ?? 'none'
    })
  }

  async begin ({ producer, transactional_id: transactionalId }) {
    if (!this.transactional.has(producer)) {
      this.transactional.set(producer, new Producer({ ...this.options, serializers: stringSerializers, idempotent: true, transactionalId }))
    }
    this.transactions.set(producer, await this.transactional.get(producer).beginTransaction())
  }

  async write ({ producer, topic, messages }) {
    await this.transactions.get(producer).send({ messages: messages.map(message => ({ topic, ...message })) })
  }

  async send_offsets ({ producer }) {
    const transaction = this.transactions.get(producer)
    await transaction.addConsumer(this.consumer)
    for (const message of this.last.values()) await transaction.addOffset(message)
  }

  async end ({ producer, commits }) {
    const transaction = this.transactions.get(producer)
    await (commits ? transaction.commit() : transaction.abort())
  }

  async subscribe ({ topic, group, isolation }) {
    this.inbox = new Inbox()
    this.taken = new Map()
    this.last = new Map()
    this.consumer = new Consumer({
      ...this.options, groupId: group, deserializers: stringDeserializers, sessionTimeout: 10000, heartbeatInterval: 500, maxWaitTime: 500
    })
    const isolationLevel = FetchIsolationLevels[isolation.toUpperCase()]
    this.stream = await this.consumer.consume({
      topics: [topic], autocommit: false, mode: 'committed', fallbackMode: 'earliest', isolationLevel
    })
    this.stream.on('data', message => this.inbox.put(message))
    this.stream.on('error', error => console.error(error))
  }

  async take ({ count, seconds }) {
    const taken = await this.inbox.take(count, seconds)
    for (const message of taken) {
      const { topic, partition, offset, leaderEpoch } = message
      this.last.set(partition, message)
      this.taken.set(partition, { topic, partition, offset: offset + 1n, leaderEpoch: leaderEpoch ?? 0 })
    }
    return taken.map(({ key, value, headers, partition, offset }) => (
      { key, value, headers: Object.fromEntries(headers), partition, offset: Number(offset) }
    ))
  }

  async commit () {
    await this.consumer.commit({ offsets: [...this.taken.values()] })
  }

  async unsubscribe () {
    await this.consumer.close(true)
  }

  async create_topic ({ topic, partitions }) {
    await this.admin.createTopics({ topics: [topic], partitions, replicas: 1 })
  }

  async delete_topic ({ topic }) {
    await this.admin.deleteTopics({ topics: [topic] })
  }

  async configure ({ topic, settings }) {
    const configs = Object.entries(settings).map(([name, value]) => ({ name, value }))
    await this.admin.alterConfigs({ resources: [{ resourceType: ConfigResourceTypes.TOPIC, resourceName: topic, configs }] })
  }

  async topics () {
    return this.admin.listTopics({ includeInternals: true })
  }

  async partitions ({ topic }) {
    return (await this.admin.metadata({ topics: [topic], forceUpdate: true })).topics.get(topic).partitions.length
  }

  async groups () {
    return [...(await this.admin.listGroups()).keys()]
  }

  async members ({ group }) {
    return (await this.admin.describeGroups({ groups: [group] })).get(group).members.size
  }

  async committed ({ group, topic }) {
    const [{ topics }] = await this.admin.listConsumerGroupOffsets({ groups: [group] })
    const found = topics.filter(({ name }) => name === topic).flatMap(({ partitions }) => partitions)
    return found.reduce((sum, { committedOffset }) => sum + Math.max(0, Number(committedOffset)), 0)
  }

  async end_offsets ({ topic }) {
    const numbers = [...Array(await this.partitions({ topic })).keys()]
    const partitions = numbers.map(partitionIndex => ({ partitionIndex, timestamp: ListOffsetTimestamps.LATEST }))
    const [found] = await this.admin.listOffsets({ topics: [{ name: topic, partitions }] })
    return found.partitions.reduce((sum, { offset }) => sum + Number(offset), 0)
  }

  async close () {
    for (const producer of [this.producer, ...this.transactional.values()]) await producer?.close(true)
    await this.admin.close()
  }
}

await serve(new Driver(process.argv[2]))
