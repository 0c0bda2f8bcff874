// What a user of the function keyed in docs/languages.md sees. Appended to it, and run, by tests/examples.
$connect = fn() => new PDO($argv[1], null, null, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$request = ['principal' => '01890a5d-ac96-7b7c-8f89-37c3d0a6c0aa', 'key' => '"01890a5d-ac96-7b7c-8f89-37c3d0a6c001"', 'action' => 'orders.create',
    'method' => 'POST', 'path' => '/api/v1/orders', 'body' => '{"sku":"\\u0041"}'];
$insert = fn(string $last, int $status = 201) => function (PDO $db) use ($last, $status) {
    $db->exec("INSERT INTO orders VALUES ('A')");
    $db->exec($last);
    return [$status, '{"sku":"A"}'];
};
$orders = fn() => $connect()->query('SELECT count(*) FROM orders')->fetchColumn();
$with = fn(int $n) => ['key' => "01890a5d-ac96-7b7c-8f89-37c3d0a6c00$n"] + $request;
$raise = fn(string $state) => "DO $$ BEGIN RAISE EXCEPTION 'asked for' USING ERRCODE = '$state'; END $$";

assert(keyed($connect, $request, $insert('SELECT')) === [201, '{"sku": "A"}', []]);
assert(keyed($connect, ['body' => '{ "sku": "A" }'] + $request, $insert('SELECT')) === [201, '{"sku": "A"}', ['Idempotent-Replay' => 'true']]);
assert(keyed($connect, ['body' => '{}'] + $request, $insert('SELECT'))[0] === 422);
assert(keyed($connect, ['key' => 'nope'] + $request, $insert('SELECT'))[0] === 400);
assert(keyed($connect, ['principal' => '01890a5d-ac96-7b7c-8f89-37c3d0a6c0bb'] + $request, $insert('SELECT'))[0] === 401);
assert($orders() === 1);

assert(keyed($connect, $with(2), $insert('SELECT', 409)) === [409, '{"sku": "A"}', []]);
assert(keyed($connect, $with(2), $insert('SELECT')) === [409, '{"sku": "A"}', ['Idempotent-Replay' => 'true']]);
assert(keyed($connect, $with(3), $insert($raise('23503')))[0] === 500);
assert(keyed($connect, $with(3), $insert($raise('40P01'))) === [503, null, ['Retry-After' => '1']]);
assert(keyed($connect, $with(3), $insert('SELECT pg_terminate_backend(pg_backend_pid())'))[0] === 503);
assert($orders() === 1);

$runs = 0;
$once = function (PDO $db) use (&$runs, $insert, $raise) {
    return $insert(++$runs === 1 ? $raise('40001') : 'SELECT')($db);
};
assert(keyed($connect, $with(3), $once) === [201, '{"sku": "A"}', []]);
assert($runs === 2 && $orders() === 2);
