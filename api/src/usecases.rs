//! One file per use case. They apply the rules and know nothing about HTTP.

pub mod archive_images;
pub mod ask_worker;
pub mod buy_credits;
pub mod create_key;
pub mod delete_account;
pub mod export_account;
pub mod find_image;
pub mod image_from_result;
pub mod magic_fix;
pub mod manage_webhooks;
pub mod mcp;
pub mod preview_picture;
pub mod removebg;
pub mod render_result;
pub mod run_tool;
pub mod run_visitor_tool;
pub mod sample;
pub mod select;
pub mod settle_payment;
pub mod sign_in;
pub mod upload_image;
pub mod verify_picture;
