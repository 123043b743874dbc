package platform.client

import kotlinx.coroutines.flow.Flow
import kotlinx.coroutines.flow.flow
import kotlinx.serialization.DeserializationStrategy
import kotlinx.serialization.SerializationException
import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import kotlinx.serialization.json.booleanOrNull
import kotlinx.serialization.json.longOrNull
import platform.client.realtime.Change
import platform.client.realtime.changesOf
import platform.client.realtime.liveOf

/** Direction of a sort. */
public enum class Direction { ASC, DESC }

/** Page of a list. [total] is null if nothing was counted, [cursor] on the last page and for searches. */
public class Page<R>(public val items: List<R>, public val total: Long?, public val hasMore: Boolean, public val cursor: String?)

/** Number of records that a query write found, and of those that it changed. */
public class WriteCounts(public val processed: Long, public val succeeded: Long)

/** Description of a query, which never changes. */
internal data class QueryState(
    val where: List<JsonElement> = emptyList(),
    val orWhere: List<JsonElement> = emptyList(),
    val sort: List<Pair<String, Direction>> = emptyList(),
    val near: String? = null,
    val limit: Int? = null,
    val fields: List<String> = emptyList(),
    val expand: List<String> = emptyList(),
) {
    /** Parameters of its conditions. */
    fun conditions(): Map<String, Any?> = mapOf("filter" to textOf(where), "orFilter" to textOf(orWhere))

    /** Parameters of its lists. */
    fun params(): Map<String, Any?> = conditions() + mapOf(
        "sort" to sort.joinToString(",") { (field, direction) -> "$field:${direction.name.lowercase()}" }.ifEmpty { null },
        "near" to near,
        "limit" to limit,
        "fields" to fields.joinToString(",").ifEmpty { null },
        "expand" to expand.joinToString(",").ifEmpty { null },
    )

    private fun textOf(filter: List<JsonElement>) = if (filter.isEmpty()) null else JsonArray(filter).toString()
}

/**
 * Records of a table that match conditions. It never changes: each method makes another query. Errors: [PlatformException].
 *
 * @param R Record: `JsonObject`, or a class of yours.
 */
public open class Query<R> internal constructor(
    internal val database: Database,
    internal val name: String,
    internal val type: DeserializationStrategy<R>,
    internal val state: QueryState,
) {
    internal val transport: Transport get() = database.transport
    internal val path: String = database.path("tables", name)

    /** Keeps what matches a condition. All of them must match. */
    public fun where(field: String, operator: String, value: Any?): Query<R> = where(condition(field, operator, value))

    /** Keeps what matches a filter. */
    public fun where(filter: Filter): Query<R> = with(state.copy(where = state.where + filter.elements))

    /** Adds an alternative: one of these must match, besides all of [where]. */
    public fun orWhere(field: String, operator: String, value: Any?): Query<R> =
        with(state.copy(orWhere = state.orWhere + condition(field, operator, value).elements))

    /** Sorts by a field; a second one orders what is equal by the first. */
    public fun sort(field: String, direction: Direction = Direction.ASC): Query<R> =
        with(state.copy(sort = state.sort + (field to direction)))

    /** Sorts by the distance from a point, nearest first; items have their `distance` in metres. */
    public fun near(field: String, latitude: Double, longitude: Double): Query<R> = with(state.copy(near = "$field:$latitude:$longitude"))

    /** Limits the records of a page: 100 by default, 1,000 at most. */
    public fun limit(count: Int): Query<R> = with(state.copy(limit = count))

    /** Selects fields; the id always belongs to them. */
    public fun fields(vararg names: String): Query<R> = with(state.copy(fields = names.toList()))

    /** Adds related records in `expand`. */
    public fun expand(vararg paths: String): Query<R> = with(state.copy(expand = state.expand + paths))

    private fun with(next: QueryState) = Query(database, name, type, next)

    /** Returns one page; [after] is the cursor of the one before. Without [total] nothing is counted. */
    public suspend fun list(after: String? = null, before: String? = null, offset: Int? = null, total: Boolean = true): Page<R> {
        val more = mapOf("after" to after, "before" to before, "offset" to offset, "total" to if (total) null else false)
        return pageOf(transport.json(Outgoing("GET", path, state.params() + more)).asObject())
    }

    /** Goes through all pages, one request each. */
    public fun pages(): Flow<Page<R>> = flow {
        var page = list()
        var seen = page.items.size
        emit(page)
        while (page.hasMore) {
            page = page.cursor?.let { list(after = it, total = false) } ?: list(offset = seen, total = false)
            seen += page.items.size
            emit(page)
        }
    }

    /** Goes through the records of all pages. */
    public fun records(): Flow<R> = flow { pages().collect { page -> page.items.forEach { emit(it) } } }

    /** Returns the first record, or null. */
    public suspend fun first(): R? = limit(1).list(total = false).items.firstOrNull()

    /** Returns the number of records. */
    public suspend fun count(): Long = transport.json(Outgoing("GET", "$path/count", state.conditions())).asObject().long("total")

    /** Returns counts, sums and so on by group: `aggregate(listOf("count()", "max(year)"), groupBy = listOf("genre"))`. */
    public suspend fun aggregate(
        select: List<String>,
        groupBy: List<String> = emptyList(),
        sort: List<String> = emptyList(),
        limit: Int? = null,
        timezone: String? = null,
    ): List<JsonObject> {
        val lists = mapOf("select" to select, "groupBy" to groupBy, "sort" to sort)
        val params = lists.mapValues { (_, names) -> names.joinToString(",").ifEmpty { null } }
        val request = Outgoing("GET", "$path/aggregate", state.conditions() + params + mapOf("limit" to limit, "timezone" to timezone))
        return transport.json(request).asObject().objects("groups")
    }

    /** Searches the texts of the table, the best match first. Records have `highlights`. */
    public suspend fun search(text: String, offset: Int? = null): Page<R> {
        val request = Outgoing("GET", "$path/search", state.params() + mapOf("q" to text, "offset" to offset))
        return pageOf(transport.json(request).asObject())
    }

    /** Updates the first 500 records that match. Errors: 400 without a condition. */
    public suspend fun updateAll(changes: Map<String, Any?>): WriteCounts = writeAll(mapOf("action" to "update", "data" to changes))

    /** Deletes the first 500 records that match. Errors: 400 without a condition. */
    public suspend fun deleteAll(): WriteCounts = writeAll(mapOf("action" to "delete"))

    private suspend fun writeAll(body: Map<String, Any?>): WriteCounts {
        if (state != QueryState(state.where, state.orWhere)) {
            throw PlatformException(400, "A query that writes has conditions only: no sort, limit, fields or expand")
        }
        val conditions = mapOf("filter" to state.where, "orFilter" to state.orWhere).filterValues { it.isNotEmpty() }
        val request = Outgoing("POST", "$path/batch-by-filter", body = jsonBody(body + conditions), isIdempotent = true)
        val answer = transport.json(request).asObject()
        return WriteCounts(answer.long("processed"), answer.long("succeeded"))
    }

    /**
     * Shows what [list] shows, at first and after each change, through lost connections and restarts of the server. It has up to 1,000
     * records, 100 without [limit]. Errors: 400 for a query with near, fields or expand; 401 and 403 where the rights end.
     */
    public fun live(): Flow<List<R>> = liveOf(this)

    /**
     * Follows the changes of the records that match the conditions, through lost connections and restarts of the server. [onReady] is
     * called once, when the subscription is in place: what is committed later is among the changes. Errors: 401 and 403 where the rights end.
     */
    public fun changes(onReady: suspend () -> Unit = {}): Flow<Change<R>> = changesOf(this, onReady)

    internal fun decode(record: JsonElement): R = try {
        json.decodeFromJsonElement(type, record)
    } catch (problem: SerializationException) {
        throw PlatformException(500, "The record does not fit its class: ${problem.message}", cause = problem)
    }

    private fun pageOf(answer: JsonObject): Page<R> = Page(
        answer.objects("items").map(::decode),
        (answer["total"] as? JsonPrimitive)?.longOrNull,
        (answer["hasMore"] as? JsonPrimitive)?.booleanOrNull ?: false,
        answer.text("cursor"),
    )
}

internal fun JsonObject.long(name: String): Long = (get(name) as? JsonPrimitive)?.longOrNull ?: 0

internal fun JsonObject.objects(name: String): List<JsonObject> = (get(name) as? JsonArray).orEmpty().map { it.asObject() }
