package platform.client

import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.Json
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import java.text.SimpleDateFormat
import java.util.Date
import java.util.Locale
import java.util.TimeZone
import java.util.UUID

/** Later versions of the server add members, which older clients leave out. */
internal val json: Json = Json { ignoreUnknownKeys = true }

/** Dates of `java.time`, which Android has from version 8 on only, so they are known by name. */
private val TEXTS = setOf("java.time.Instant", "java.time.OffsetDateTime", "java.time.LocalDate")
private val NOT_FINITE = setOf("NaN", "Infinity", "-Infinity")

/**
 * Returns a value as JSON: null, texts, numbers, booleans, maps, lists, enums (their name), UUIDs, dates, and what is JSON already.
 * Errors: 400 for what JSON does not have, before anything is sent.
 */
internal fun jsonOf(value: Any?): JsonElement = when (value) {
    null -> JsonNull
    is JsonPrimitive -> if (!value.isString && value.content in NOT_FINITE) refused("JSON has no ${value.content}") else value
    is Map<*, *> -> JsonObject(value.entries.associate { (name, member) -> name.toString() to jsonOf(member) })
    is Iterable<*> -> JsonArray(value.map(::jsonOf))
    is Array<*> -> JsonArray(value.map(::jsonOf))
    is Filter -> value.toJson()
    is String -> JsonPrimitive(value)
    is Boolean -> JsonPrimitive(value)
    is Number -> numberOf(value)
    is Enum<*> -> JsonPrimitive(value.name)
    is Date -> JsonPrimitive(instantOf(value))
    is UUID, is kotlin.time.Instant -> JsonPrimitive(value.toString())
    else -> if (value.javaClass.name in TEXTS) JsonPrimitive(value.toString()) else refused("${value.javaClass.name} has no form in JSON")
}

private fun numberOf(value: Number): JsonElement =
    if (value.toDouble().isFinite()) JsonPrimitive(value) else refused("JSON has no $value")

private fun instantOf(date: Date): String =
    SimpleDateFormat("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'", Locale.ROOT).apply { timeZone = TimeZone.getTimeZone("UTC") }.format(date)

private fun refused(problem: String): Nothing = throw PlatformException(400, "It cannot be sent as JSON: $problem")

internal fun bytesOf(value: JsonElement): ByteArray = value.toString().toByteArray()

/** Returns the JSON of a text, null where it is none. */
internal fun parsed(body: ByteArray): JsonElement? = try {
    if (body.isEmpty()) null else json.parseToJsonElement(String(body, Charsets.UTF_8))
} catch (_: SerializationException) {
    null
}
