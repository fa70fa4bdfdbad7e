-- no-transaction
-- One image per result, however often its owner asks; also finds it when the result is deleted.
create unique index concurrently if not exists image_of_result on images (made_from_result)
    where made_from_result is not null;
