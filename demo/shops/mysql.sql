-- A small shop, generated inside the server: about 275,000 rows in a few seconds.
-- Of shop_app (the application); cdc_user is what Tidegate connects as.
-- No foreign key cascades: what a cascade does is not in the binary log.
CREATE TABLE customers (
    id           bigint AUTO_INCREMENT PRIMARY KEY,
    email        varchar(190) NOT NULL UNIQUE,
    name         varchar(120) NOT NULL,
    country      char(2) CHARACTER SET ascii NOT NULL,
    birth_date   date,
    tags         set('new', 'vip', 'b2b', 'net30', 'sale', 'gift') NOT NULL DEFAULT '',
    preferences  json NOT NULL DEFAULT '{}',
    credit_limit decimal(12, 2),
    is_active    bit(1) NOT NULL DEFAULT 1,
    created_at   timestamp NOT NULL DEFAULT current_timestamp
);

CREATE TABLE products (
    id          int unsigned AUTO_INCREMENT PRIMARY KEY,
    sku         varchar(20) NOT NULL UNIQUE,
    name        varchar(100) NOT NULL,
    description mediumtext NOT NULL,
    price       decimal(10, 2) NOT NULL CHECK (price > 0),
    attributes  json NOT NULL DEFAULT '{}',
    weight_kg   double,
    stock       bigint unsigned NOT NULL DEFAULT 0,
    updated_at  datetime(6) NOT NULL DEFAULT current_timestamp(6)
);

CREATE TABLE orders (
    id          bigint AUTO_INCREMENT PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES customers (id),
    status      enum('placed', 'paid', 'shipped', 'cancelled') NOT NULL,
    total       decimal(14, 2) NOT NULL,
    shipping    json NOT NULL,
    placed_at   timestamp(3) NOT NULL DEFAULT current_timestamp(3),
    changed_at  timestamp(3) NOT NULL DEFAULT current_timestamp(3),
    INDEX (status)
);

CREATE TABLE order_items (
    order_id   bigint NOT NULL REFERENCES orders (id),
    line_no    smallint NOT NULL,
    product_id int unsigned NOT NULL REFERENCES products (id),
    quantity   int NOT NULL CHECK (quantity > 0),
    unit_price decimal(10, 2) NOT NULL,
    discount   decimal(5, 4) NOT NULL DEFAULT 0,
    PRIMARY KEY (order_id, line_no)
);

CREATE TABLE payments (
    id        uuid PRIMARY KEY DEFAULT uuid(),
    order_id  bigint NOT NULL REFERENCES orders (id),
    method    varchar(20) NOT NULL,
    amount    decimal(14, 2) NOT NULL,
    reference varchar(40),
    paid_at   datetime NOT NULL DEFAULT current_timestamp
);

INSERT INTO customers (email, name, country, birth_date, tags, preferences, credit_limit, is_active, created_at)
SELECT concat('customer', seq, '@example.com'),
       concat(elt(1 + seq % 6, 'Ada', 'Björn', 'Chloé', 'Dmitri', 'Eun-ji', 'Fatima'), ' ', left(md5(seq), 7)),
       elt(1 + seq % 8, 'AT', 'BR', 'CA', 'DE', 'FR', 'IN', 'JP', 'US'),
       if(seq % 10 > 0, '1950-01-01' + INTERVAL floor(rand(seq) * 20000) DAY, NULL),
       elt(1 + seq % 4, '', 'new', 'vip', 'b2b,net30'),
       json_object('newsletter', seq % 3 = 0, 'language', elt(1 + seq % 3, 'de', 'en', 'fr')),
       if(seq % 5 > 0, round(rand(seq + 1) * 10000, 2), NULL),
       seq % 50 > 0,
       '2023-01-01' + INTERVAL seq * 61 MINUTE
FROM seq_1_to_20000;

INSERT INTO products (sku, name, description, price, attributes, weight_kg, stock, updated_at)
SELECT concat('SKU-', lpad(seq, 6, '0')), concat('Product ', seq), repeat(md5(seq), 90),
       round(1 + rand(seq) * 500, 2),
       json_object('colour', elt(1 + seq % 3, 'red', 'green', 'blue'), 'sizes', json_array(seq % 5, seq % 7)),
       if(seq % 7 > 0, rand(seq + 2) * 30, NULL), floor(rand(seq + 3) * 1000) + 1000,
       '2024-01-01' + INTERVAL seq * 7 MINUTE
FROM seq_1_to_3000;

INSERT INTO orders (customer_id, status, total, shipping, placed_at, changed_at)
SELECT 1 + floor(rand(seq) * 20000),
       elt(1 + seq % 5, 'placed', 'paid', 'shipped', 'shipped', 'cancelled'),
       round(5 + rand(seq + 1) * 900, 2),
       json_object('carrier', elt(1 + seq % 3, 'post', 'courier', 'pickup'), 'city', concat('City ', seq % 900)),
       '2024-01-01' + INTERVAL seq * 11 MINUTE, '2024-01-01' + INTERVAL seq * 11 + seq % 7000 MINUTE
FROM seq_1_to_70000;

INSERT INTO order_items (order_id, line_no, product_id, quantity, unit_price, discount)
SELECT o.id, line.seq, 1 + floor(rand(o.id + line.seq) * 3000), 1 + o.id % 4,
       round(1 + rand(o.id) * 500, 2), if(line.seq = 2, round(rand(o.id + 9) * 0.3, 4), 0)
FROM orders AS o JOIN seq_1_to_3 AS line ON line.seq <= 1 + o.id % 3;

INSERT INTO payments (order_id, method, amount, reference, paid_at)
SELECT id, elt(1 + id % 3, 'card', 'invoice', 'wallet'), total,
       if(id % 4 > 0, concat('REF-', left(md5(id), 12)), NULL), placed_at + INTERVAL 3 MINUTE
FROM orders WHERE status IN ('paid', 'shipped');

CREATE INDEX payments_order ON payments (order_id);
