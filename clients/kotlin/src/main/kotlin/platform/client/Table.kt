package platform.client

import kotlinx.serialization.DeserializationStrategy
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.serializer

/** File of a record's field. */
public class RecordFile(public val name: String, public val content: ByteArray, public val contentType: String)

/** Change of one record in a batch. */
public class RecordUpdate(public val id: String, public val changes: Map<String, Any?>)

/** Records of a batch, in the order of its operations. */
public class BatchResult<R>(public val inserted: List<R>, public val updated: List<R>, public val deleted: List<JsonObject>)

/** Table: the query of all its records, and their writes. Writes of users and service keys are tried again, and done once. */
public class Table<R> internal constructor(database: Database, name: String, type: DeserializationStrategy<R>) :
    Query<R>(database, name, type, QueryState()) {

    /** Returns a record. Errors: 404 where there is none, or the caller may not read it. */
    public suspend fun get(id: String, fields: List<String> = emptyList(), expand: List<String> = emptyList()): R {
        // A search without a text is refused, and "search" is no id either.
        if (id == "search") throw notFound(id)
        val params = mapOf("fields" to fields, "expand" to expand).mapValues { (_, names) -> names.joinToString(",").ifEmpty { null } }
        val record = transport.json(Outgoing("GET", at(id), params))
        // "count" and "aggregate" are endpoints of the table.
        if ((record as? JsonObject)?.text("id") != id) throw notFound(id)
        return decode(record)
    }

    /** Inserts a record. [files] has those of its fields of type `file`. */
    public suspend fun insert(record: Map<String, Any?>, files: Map<String, RecordFile> = emptyMap()): R =
        write("POST", path, record, emptyMap(), files)

    /** Changes fields of a record; null clears one. Errors: 412 where the stored record does not meet [onlyIf]. */
    public suspend fun update(
        id: String,
        changes: Map<String, Any?>,
        onlyIf: Filter? = null,
        files: Map<String, RecordFile> = emptyMap(),
    ): R = write("PATCH", at(id), changes, mapOf("if" to onlyIf), files)

    /** Updates the record with the same id, or the same value of a unique field; inserts it if there is none. */
    public suspend fun upsert(
        record: Map<String, Any?>,
        conflictTarget: String = "id",
        files: Map<String, RecordFile> = emptyMap(),
    ): R = write("POST", path, record, mapOf("upsert" to true, "conflictTarget" to conflictTarget.takeIf { it != "id" }), files)

    /** Deletes a record. It is sent once. Errors: 404; 412 where the stored record does not meet [onlyIf]. */
    public suspend fun delete(id: String, onlyIf: Filter? = null) {
        transport.json(Outgoing("DELETE", at(id), mapOf("if" to onlyIf)))
    }

    /** Does up to 500 writes, all or none. */
    public suspend fun batch(
        inserts: List<Map<String, Any?>> = emptyList(),
        updates: List<RecordUpdate> = emptyList(),
        deletes: List<String> = emptyList(),
        upsert: Boolean = false,
    ): BatchResult<R> {
        val changes = updates.map { mapOf("id" to it.id, "data" to it.changes) }
        val body = mapOf("inserts" to inserts, "updates" to changes, "deletes" to deletes).filterValues { it.isNotEmpty() }
        val params = mapOf("upsert" to if (upsert) true else null)
        val request = Outgoing("POST", "$path/batch", params, jsonBody(body), isIdempotent = true)
        val answer = transport.json(request).asObject()
        return BatchResult(
            answer.objects("inserted").map(::decode),
            answer.objects("updated").map(::decode),
            answer.objects("deleted"),
        )
    }

    internal fun at(id: String): String = path + pathOf(id)

    private suspend fun write(
        method: String,
        path: String,
        record: Map<String, Any?>,
        params: Map<String, Any?>,
        files: Map<String, RecordFile>,
    ): R {
        val body = if (files.isEmpty()) jsonBody(record) else formOf(
            listOf(Part("record", null, "application/json", bytesOf(jsonOf(record)))) +
                files.map { (field, file) -> Part(field, file.name, file.contentType, file.content) },
        )
        return decode(transport.json(Outgoing(method, path, params, body, isIdempotent = true)))
    }
}

/** Inserts a record of a class that is `@Serializable`. */
public suspend inline fun <R, reified I : Any> Table<R>.insert(record: I): R = insert(asRecord { recordJson.encodeToJsonElement(serializer<I>(), record) })

@PublishedApi
internal val recordJson: kotlinx.serialization.json.Json = json

@PublishedApi
internal fun asRecord(encode: () -> JsonElement): JsonObject = try {
    encode() as? JsonObject ?: throw PlatformException(400, "A record must be an object")
} catch (problem: SerializationException) {
    throw PlatformException(400, "It cannot be sent as JSON: ${problem.message}", cause = problem)
}

/** Tables of a namespace, or of one instance of it. */
public class Database internal constructor(internal val client: PlatformClient, private val namespace: String, private val instance: String?) {
    internal val transport: Transport get() = client.transport
    private val place = listOfNotNull(namespace, instance)

    /** Returns a table whose records are `JsonObject`s. */
    public fun table(name: String): Table<JsonObject> = Table(this, name, JsonObject.serializer())

    /** Returns a table whose records have a class that is `@Serializable`: `table("films", Film.serializer())`. */
    public fun <R> table(name: String, type: DeserializationStrategy<R>): Table<R> = Table(this, name, type)

    /**
     * Does up to 500 operations over all tables, in order, all or none: maps with `table`, `action` (`insert`, `update`, `upsert`, `delete`),
     * `id`, `data`, `if` and `conflictTarget`. Returns the records.
     */
    public suspend fun transaction(operations: List<Map<String, Any?>>): List<JsonObject> {
        val body = jsonBody(mapOf("operations" to operations))
        return transport.json(Outgoing("POST", path("transaction"), body = body, isIdempotent = true)).asObject().objects("results")
    }

    internal fun path(vararg more: String): String = "/api/db" + pathOf(*place.toTypedArray(), *more)

    internal fun channel(table: String): String = (listOf("realtime") + place + table).joinToString(":")
}
