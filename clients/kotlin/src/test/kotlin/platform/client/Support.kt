package platform.client

import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.delay
import kotlinx.coroutines.runBlocking
import kotlinx.coroutines.withTimeout
import org.junit.jupiter.api.AfterAll
import org.junit.jupiter.api.TestInstance
import kotlin.test.assertFailsWith

/** Runs a test that ends in time. */
internal fun tested(work: suspend CoroutineScope.() -> Unit) = runBlocking(Dispatchers.Default) { withTimeout(40_000) { work() } }

/** Waits until something holds. */
internal suspend fun until(holds: suspend () -> Boolean) {
    while (!holds()) delay(20)
}

internal suspend fun failing(status: Int, work: suspend () -> Unit): PlatformException {
    val error = assertFailsWith<PlatformException> { work() }
    kotlin.test.assertEquals(status, error.status, error.toString())
    return error
}

/** Tests against one server. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
internal abstract class ServerTest {
    val server by lazy { Server(CONFIG) }

    @AfterAll
    fun end() = server.close()
}
