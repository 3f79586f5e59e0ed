use super::*;
use std::net::Ipv4Addr;

fn address(last: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

fn table(open_max: usize, per_address_max: usize) -> Arc<ConnectionTable> {
    ConnectionTable::new(TableLimits { open_max, per_address_max, buffered_max: 100 })
}

fn admit(table: &Arc<ConnectionTable>, last: u8) -> Connection {
    table.admit(address(last)).0
}

async fn is_evicted(connection: &Connection) -> bool {
    tokio::time::timeout(Duration::ZERO, connection.evicted()).await.is_ok()
}

#[tokio::test]
async fn a_full_table_evicts_the_idlest_connection_of_the_greediest_address() {
    let table = table(4, 4);
    let other = admit(&table, 1);
    let [first, second, third] = [(); 3].map(|()| admit(&table, 2));
    first.touch();
    let (_new, evicted) = table.admit(address(3));
    assert!(evicted && is_evicted(&second).await);
    for kept in [&other, &first, &third] {
        assert!(!is_evicted(kept).await);
    }
}

#[tokio::test]
async fn an_address_at_its_limit_loses_its_own_idlest_connection() {
    let table = table(100, 2);
    let other = admit(&table, 1);
    let first = admit(&table, 2);
    let _second = admit(&table, 2);
    let (_third, evicted) = table.admit("::ffff:192.0.2.2".parse().unwrap());
    assert!(evicted && is_evicted(&first).await && !is_evicted(&other).await);
}

#[tokio::test]
async fn a_closed_connection_makes_room() {
    let table = table(2, 2);
    let (first, second) = (admit(&table, 1), admit(&table, 2));
    drop(first);
    assert!(!table.admit(address(3)).1);
    assert!(!is_evicted(&second).await);
}

#[tokio::test]
async fn connections_through_a_proxy_count_for_their_clients() {
    let table = table(100, 1);
    let first = admit(&table, 1);
    first.belongs_to(address(7));
    let second = admit(&table, 1);
    assert!(!is_evicted(&first).await);
    second.belongs_to(address(7));
    assert!(is_evicted(&first).await && !is_evicted(&second).await);
}

#[tokio::test]
async fn the_address_that_buffers_most_loses_its_largest_connection() {
    let table = table(100, 100);
    let (small, large) = (admit(&table, 1), admit(&table, 1));
    assert!(small.reserve(30) && large.reserve(50));
    let other = admit(&table, 2);
    assert!(other.reserve(40));
    assert!(is_evicted(&large).await && !is_evicted(&small).await);
    // The evicted connection still holds its bytes, which will be freed soon. No other connection has to be evicted.
    assert!(other.reserve(20) && !is_evicted(&small).await);
    drop(large);
    assert!(other.reserve(10) && !is_evicted(&small).await);
    assert!(!other.reserve(10), "the address itself holds the most bytes now");
    drop((small, other));
    assert!(admit(&table, 3).reserve(100));
}

#[tokio::test]
async fn idle_times_shorten_as_the_table_fills() {
    let table = table(10, 10);
    let usual = Duration::from_secs(10);
    let mut open: Vec<_> = (0..5).map(|last| admit(&table, last)).collect();
    assert_eq!(table.idle_time(usual), usual);
    open.extend((5..8).map(|last| admit(&table, last)));
    assert_eq!(table.idle_time(usual), Duration::from_secs(4));
    open.extend((8..10).map(|last| admit(&table, last)));
    assert_eq!(table.idle_time(usual), IDLE_MIN);
    assert_eq!(table.idle_time(IDLE_MIN / 2), IDLE_MIN / 2);
}

#[tokio::test]
async fn an_address_with_its_own_limit_is_shared_fairly() {
    let table = ConnectionTable::new(TableLimits::UNBOUNDED);
    let admit = |last| table.admit_within(address(last), 3, Arc::default());
    let [first, second, third] = [(); 3].map(|()| admit(1).unwrap());
    assert!(admit(1).is_none(), "the address itself has the most connections");
    second.touch();
    let other = admit(2).unwrap();
    assert!(is_evicted(&first).await && !is_evicted(&third).await);
    assert!(admit(2).is_none(), "it would only evict another one");
    assert!(admit(3).is_some());
    drop(other);
}

fn at(millis: u64) -> Instant {
    Instant::START + Duration::from_millis(millis)
}

#[tokio::test]
async fn silent_connections_of_many_clients_lose_against_a_new_client() {
    let open_max = 200;
    for has_limit in [false, true] {
        let limits = TableLimits { open_max, per_address_max: open_max, buffered_max: 100 };
        let table = ConnectionTable::new(if has_limit { limits } else { TableLimits::UNBOUNDED });
        let open = |last, now| {
            let (address, evicted) = (address(last), Arc::default());
            if has_limit {
                Some(table.admit_at(address, 1, evicted, now).0)
            } else {
                table.admit_within_at(address, open_max, evicted, now)
            }
        };
        let silent: Vec<Connection> = (1..200).map(|last| open(last, at(u64::from(last))).unwrap()).collect();
        let asking = open(200, at(0)).unwrap();
        asking.touch_at(at(0));
        let new: Vec<Connection> = (201..=230).map(|last| open(last, at(1200)).unwrap()).collect();
        assert_eq!(table.open(), open_max);
        for (index, connection) in silent.iter().enumerate() {
            assert_eq!(is_evicted(connection).await, index < 30, "the oldest ones go first");
        }
        for kept in new.iter().chain([&asking]) {
            assert!(!is_evicted(kept).await, "a handshake goes on, and so does a connection with queries");
        }
    }
}

#[tokio::test]
async fn a_search_without_result_does_not_delay_the_eviction_of_a_silent_connection() {
    for (millis, evicts_silent) in [(1299, false), (1300, true)] {
        let table = table(3, 3);
        let open = |last, millis| table.admit_at(address(last), 1, Arc::default(), at(millis)).0;
        let (idlest, idle, silent) = (open(1, 0), open(2, 0), open(3, 300));
        idlest.touch_at(at(1));
        idle.touch_at(at(2));
        let young = open(4, 500);
        assert!(is_evicted(&idlest).await, "none is silent");
        let _new = open(5, millis);
        assert_eq!(is_evicted(&silent).await, evicts_silent);
        assert_eq!(is_evicted(&idle).await, !evicts_silent);
        assert!(!is_evicted(&young).await);
    }
}

#[tokio::test]
async fn connections_with_queries_in_flight_are_never_evicted_for_new_ones() {
    let table = ConnectionTable::new(TableLimits::UNBOUNDED);
    let open = |last, now| table.admit_within_at(address(last), 3, Arc::default(), now);
    let asking: Vec<Connection> = (1..=3).map(|last| open(last, at(0)).unwrap()).collect();
    for (connection, millis) in asking.iter().zip([2, 1, 3]) {
        connection.touch_at(at(millis));
    }
    assert!(open(4, at(5000)).is_none());
    let new = open(4, at(5002));
    assert!(new.is_some() && is_evicted(&asking[1]).await && !is_evicted(&asking[0]).await);
    assert!(open(4, at(5004)).is_none(), "it has as many as the others");
}

#[tokio::test]
async fn addresses_of_one_ipv6_prefix_are_one_client() {
    let table = table(100, 2);
    let open = |address: &str| table.admit(address.parse().unwrap()).0;
    let (first, second, other) = (open("2001:db8::1"), open("2001:db8::2"), open("2001:db8:0:1::1"));
    let third = open("2001:db8::ffff:0:0:3");
    assert!(is_evicted(&first).await);
    for kept in [&second, &other, &third] {
        assert!(!is_evicted(kept).await);
    }
}

#[test]
fn evicted_connections_count_as_free_only_up_to_a_bound() {
    let size = LEAVING_MAX / 2;
    let limits = TableLimits { open_max: 1000, per_address_max: 1000, buffered_max: 4 * size };
    let table = ConnectionTable::new(limits);
    let connections: Vec<Connection> = (0..100).map(|last| admit(&table, last)).collect();
    let granted = connections.iter().filter(|connection| connection.reserve(size)).count();
    assert_eq!(granted, 4 + 3, "no connection has been closed yet");
    assert!(table.buffered.load(Ordering::Relaxed) <= 4 * size + LEAVING_MAX + size);
    drop(connections);
    assert_eq!((table.buffered.load(Ordering::Relaxed), table.lock().leaving), (0, 0));
    assert!(admit(&table, 1).reserve(size));
}

#[test]
fn connections_that_take_more_memory_leave_places_for_fewer() {
    let table = table(10, 10);
    let heavy: Vec<Connection> = (0..4).map(|last| table.admit_weighing(address(last), 4, Arc::default()).0).collect();
    assert_eq!((table.open(), heavy.iter().filter(|one| one.is_evicted()).count()), (8, 2));
    let (light, evicted) = table.admit(address(9));
    assert!(!evicted && table.open() == 9, "one of weight 1 fits");
    let (_heavy, evicted) = table.admit_weighing(address(10), 4, Arc::default());
    assert!(evicted && table.open() <= 10);
    drop((light, heavy));
    assert_eq!(table.open(), 4);
}

#[test]
fn workers_that_admit_at_the_same_time_stay_within_the_limit() {
    const OPEN_MAX: usize = 2;
    let table = ConnectionTable::new(TableLimits::UNBOUNDED);
    let admit = || table.admit_within(address(1), OPEN_MAX, Arc::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    let admitted = admit();
                    assert!(table.open() <= OPEN_MAX, "{} of {OPEN_MAX}", table.open());
                    drop(admitted);
                }
            });
        }
    });
}
