// KafkaJS's registry client: `kafkajs.mjs URL SUFFIX` gets values and bytes as lines of JSON, prints what it made of them.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

const { SchemaRegistry, SchemaType } = createRequire(process.env.NODE_PATH + '/')('@kafkajs/confluent-schema-registry')
const [url, suffix] = process.argv.slice(2)
const { schemas, value, bytes, incompatible } = JSON.parse(readFileSync(0, 'utf8'))
const registry = new SchemaRegistry({ host: url, retry: { retries: 0 } })
const answers = {}

for (const [kind, schema] of Object.entries(schemas)) {
  const subject = `${suffix}-${kind}`
  const given = { type: SchemaType[kind], schema }
  const { id } = await registry.register(given, { subject })
  const again = await registry.register(given, { subject })
  answers[kind] = {
    bytes: (await registry.encode(id, value)).toString('hex'),
    theirs: await new SchemaRegistry({ host: url }).decode(Buffer.from(bytes[kind], 'hex')),
    ids: new Set([id, again.id, await registry.getLatestSchemaId(subject), await registry.getRegistryId(subject, 1),
      await registry.getRegistryIdBySchema(subject, given)]).size
  }
}

const refused = async call => {
  try {
    await call()
  } catch (error) {
    return [error.status, error.name]
  }
}
const avro = { type: SchemaType.AVRO, schema: incompatible }
answers.incompatible = await refused(() => registry.register(avro, { subject: `${suffix}-AVRO` }))
answers.unknown = await refused(() => registry.getLatestSchemaId(`${suffix}-nowhere`))
answers.unknownId = await refused(() => registry.decode(Buffer.from('00000f423f00', 'hex')))
console.log(JSON.stringify(answers))
